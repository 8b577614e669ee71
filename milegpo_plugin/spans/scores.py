"""Scores that other tools keep apart from spans → reward spans in the vocabulary of Agent Lightning."""

from __future__ import annotations

import hashlib
from typing import Final

from milegpo_plugin import semconv
from milegpo_plugin.types import JSON, Span

_SPAN_ID_DIGITS: Final = 16


def derived_id(*parts: JSON) -> str:
    """A span id that is always the same for the same parts."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:_SPAN_ID_DIGITS]


def score_span(
    name: JSON, value: JSON, time_ns: int, *, links: dict[str, str], session: JSON = None, key: JSON = None
) -> Span:
    """One score as an annotation span that links to what was scored.

    Args:
        name: the dimension.
        value: anything but a finite number is no reward, and is not read as one.
        time_ns: when it was given; it counts for the last call before that unless a link names one.
        links: ``span_id`` or ``trace_id`` of what was scored; empty for a score of a session.
        session: the session that was scored.
        key: the score's own id, which tells two equal scores apart.
    """
    attributes: dict[str, JSON] = {
        semconv.AGL_REWARD + "0.name": name,
        semconv.AGL_REWARD + "0.value": value,
    }
    for number, (what, target) in enumerate(links.items()):
        attributes[f"{semconv.AGL_LINK}{number}.key_match"] = what
        attributes[f"{semconv.AGL_LINK}{number}.value_match"] = target
    if session:
        attributes[semconv.SESSION_ID] = session
    span_id = derived_id("score", key, name, value, time_ns, *links.values())
    return Span(
        trace_id=links.get("trace_id") or span_id,
        span_id=span_id,
        parent_id=None,
        name=semconv.AGL_ANNOTATION_SPAN,
        start_ns=time_ns,
        end_ns=time_ns,
        attributes=attributes,
    )
