"""Rewards and scores on spans, whatever dialect the span belongs to.

``agentlightning.reward.K.{name,value}`` (K = 0 is the primary dimension), and
``gen_ai.evaluation.result`` as a span event or a log record. Importers write scores of other
tools as such events.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from milegpo_plugin import semconv
from milegpo_plugin.adapters.values import indexed
from milegpo_plugin.types import JSON, Span, SpanEvent

_PRIMARY_VALUE: Final = semconv.AGL_REWARD + "0.value"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardSignal:
    """One reward as it was emitted: its dimensions in order, and what it was linked to.

    A dimension whose value is no number has NaN. ``links`` are (key, value) pairs that the rewarded
    span has: ``span_id``, ``trace_id`` or an attribute such as ``gen_ai.response.id``. ``on_span``
    says that the score was written on the rewarded span itself, not on a span of its own.
    """

    span: Span
    time_ns: int
    dimensions: tuple[tuple[str, float], ...]
    links: tuple[tuple[str, str], ...] = ()
    on_span: bool = False


def read_rewards(span: Span) -> list[RewardSignal]:
    """Every reward on ``span``, in the order in which they were written.

    Evaluations of different names on one span are the dimensions of one reward.
    """
    signals: list[RewardSignal] = []
    if span.events or span.logs:
        events = [*span.events, *span.logs]
        evaluations = [event for event in events if event.name == semconv.EVALUATION_EVENT]
        signals = _evaluations(span, evaluations) if evaluations else []
    if _PRIMARY_VALUE in span.attributes:
        signals.append(_annotation(span))
    return signals


def _annotation(span: Span) -> RewardSignal:
    fields = indexed(span.attributes, semconv.AGL_REWARD).values()
    links = indexed(span.attributes, semconv.AGL_LINK).values()
    return RewardSignal(
        span=span,
        time_ns=span.start_ns,
        dimensions=tuple(_dimension(item.get("name"), item.get("value")) for item in fields),
        links=tuple(
            (str(link["key_match"]), str(link["value_match"]))
            for link in links
            if "key_match" in link and "value_match" in link
        ),
    )


def _evaluations(span: Span, events: Sequence[SpanEvent]) -> list[RewardSignal]:
    names = [event.attributes.get(semconv.EVALUATION_NAME) for event in events]
    if len(set(map(str, names))) == len(names):
        return [_evaluation(span, events)]
    return [_evaluation(span, [event]) for event in events]


def _evaluation(span: Span, events: Sequence[SpanEvent]) -> RewardSignal:
    last = events[-1]
    response_id = last.attributes.get(semconv.RESPONSE_ID)
    return RewardSignal(
        span=span,
        time_ns=last.time_ns or span.end_ns,
        dimensions=tuple(
            _dimension(
                event.attributes.get(semconv.EVALUATION_NAME), event.attributes.get(semconv.EVALUATION_SCORE)
            )
            for event in events
        ),
        links=((semconv.RESPONSE_ID, str(response_id)),) if response_id else (),
        on_span=True,
    )


def _dimension(name: JSON, value: JSON) -> tuple[str, float]:
    return str(name or ""), float(value) if isinstance(value, int | float) else math.nan
