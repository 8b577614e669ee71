"""Spans → everything that the dialects read in them, in order of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

from milegpo_plugin import semconv
from milegpo_plugin.adapters import (
    AgentScope,
    ModelCall,
    RewardSignal,
    SpanKey,
    SpanTree,
    ToolRun,
    dialect_of,
    read_rewards,
)
from milegpo_plugin.trajectories.calls import is_incomplete
from milegpo_plugin.trajectories.runs import merge_nested_runs
from milegpo_plugin.types import Skipped, Span

_PENDING: Final = "pending_span"
_START: Final = attrgetter("start_ns")
MALFORMED: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading an attribute of an unexpected type or form may raise: one span must not cost the others."""


class Reading(NamedTuple):
    """One span read as a model call, the name of the dialect that read it, and its flags."""

    call: ModelCall
    dialect: str
    flags: frozenset[str]


@dataclass(slots=True)
class Evidence:
    """What a set of spans says; every list is in order of start time."""

    spans: Sequence[Span]
    tree: SpanTree
    readings: list[Reading] = field(default_factory=list)
    tools: list[ToolRun] = field(default_factory=list)
    scopes: list[AgentScope] = field(default_factory=list)
    rewards: list[RewardSignal] = field(default_factory=list)
    unreadable: list[Skipped] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def read_evidence(spans: Iterable[Span]) -> Evidence:
    """Read every span once through the dialect that it belongs to."""
    ordered, duplicates = _unique(spans)
    evidence = Evidence(ordered, SpanTree(ordered))
    evidence.counts.update(spans=len(ordered), duplicate_spans=duplicates)
    for span in ordered:
        try:
            _read_span(span, evidence)
        except MALFORMED as error:
            evidence.unreadable.append(
                Skipped("span", span.span_id, f"{span.name!r} is malformed: {error!r}")
            )
    evidence.tools = merge_nested_runs(evidence.tools, evidence.scopes, evidence.tree)
    evidence.counts.update(
        model_calls=len(evidence.readings), tool_runs=len(evidence.tools), rewards=len(evidence.rewards)
    )
    return evidence


def time_order(span: Span) -> tuple[int, int, str, str]:
    """Sort key: by start; of spans that start together the longest, which is the outer one."""
    return span.start_ns, -span.end_ns, span.trace_id, span.span_id


def in_time_order(spans: Collection[Span]) -> list[Span]:
    """Spans by ``time_order``; where no two start together the start is the whole key."""
    starts = {span.start_ns for span in spans}
    return sorted(spans, key=_START if len(starts) == len(spans) else time_order)


def _unique(spans: Iterable[Span]) -> tuple[list[Span], int]:
    """Every span once, in order of time; of two copies the one that says more."""
    best: dict[SpanKey, Span] = {}
    count = 0
    for span in spans:
        count += 1
        key = (span.trace_id, span.span_id)
        if key not in best or _fullness(span) > _fullness(best[key]):
            best[key] = span
    return in_time_order(best.values()), count - len(best)


def _fullness(span: Span) -> tuple[int, int, int, bool, str]:
    return (
        len(span.attributes),
        len(span.logs),
        len(span.events),
        span.rollout_id is not None,
        repr(span.end_ns),
    )


def _read_span(span: Span, evidence: Evidence) -> None:
    if span.attributes.get(semconv.LOGFIRE_SPAN_TYPE) == _PENDING:
        return
    evidence.rewards.extend(read_rewards(span))
    dialect = dialect_of(span)
    if dialect is None:
        evidence.counts["unknown_spans"] += 1
        return
    call, tool, scope = dialect.read(span, evidence.tree)
    if call is not None:
        evidence.readings.append(Reading(call, dialect.name, _flags(call)))
    if tool is not None:
        evidence.tools.append(tool)
    if scope is not None:
        evidence.scopes.append(scope)


def _flags(call: ModelCall) -> frozenset[str]:
    """The dialect's flags and those that do not depend on the dialect."""
    flags = []
    if call.span.dropped_attributes or call.first_index:
        flags.append("dropped_attributes")
    if is_incomplete(call):
        flags.append("missing_completion" if call.reply is None else "missing_tool_calls")
    if call.span.status == "ERROR":
        flags.append("error_status")
    if _counts_differ(call):
        flags.append("token_count_mismatch")
    return call.flags.union(flags) if flags else call.flags


def _counts_differ(call: ModelCall) -> bool:
    prompt, response, logprobs = call.prompt_token_ids, call.response_token_ids, call.logprobs
    if prompt is not None and call.prompt_tokens not in (None, len(prompt)):
        return True
    if response is None:
        return False
    return call.response_tokens not in (None, len(response)) or (
        logprobs is not None and len(logprobs) != len(response)
    )
