"""One model call, several spans: framework and client, nested or apart, with or without ids.

Copies are joined by nesting, by response id, by tool-call ids, and last by content when one lies
within the other in time. Two real, identical calls that do not overlap stay two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from milegpo_plugin.adapters import ModelCall, SpanKey, SpanTree
from milegpo_plugin.adapters.messages import message_text, tool_call_ids
from milegpo_plugin.trajectories.ancestors import nearest_ancestors
from milegpo_plugin.trajectories.calls import Call, same_message, tool_names
from milegpo_plugin.trajectories.evidence import Evidence, Reading, time_order
from milegpo_plugin.trajectories.unions import Unions
from milegpo_plugin.types import Message, Span

_CLOCK_NS: Final = 1_000_000
"""Stamps of one process may differ by this much between two instrumentations."""

_FILLED: Final = (
    "reply",
    "response_id",
    "previous_response_id",
    "conversation_id",
    "model",
    "agent",
    "finish_reason",
    "prompt_token_ids",
    "response_token_ids",
    "logprobs",
    "prompt_tokens",
    "response_tokens",
)
"""Fields that a copy gives where the best one has none."""


def merge_duplicates(evidence: Evidence) -> list[Call]:
    """The calls that really happened, in order of time."""
    readings, nested = _nested_copies(evidence)
    unions = Unions(range(len(readings)))
    for left, right in nested:
        unions.join(left, right)
    for left, right in _pairs(readings):
        unions.join(left, right)
    calls = [_merge([readings[index] for index in group], evidence.tree) for group in unions.groups()]
    evidence.counts["duplicate_calls"] = len(evidence.readings) - len(calls)
    return calls


def _nested_copies(evidence: Evidence) -> tuple[list[Reading], list[tuple[int, int]]]:
    """Readings without false outer calls, and the (outer, inner) pairs of the rest.

    An outer span with two or more answered inner calls of one dialect is no call: somebody wrote
    the attributes of its children onto it.
    """
    by_key = {_key(reading): reading for reading in evidence.readings}
    nearest = nearest_ancestors(
        evidence.tree,
        [reading.call.span for reading in evidence.readings],
        by_key.keys(),
        _barriers(evidence),
    )
    inner: defaultdict[SpanKey, list[Reading]] = defaultdict(list)
    for key, outer in nearest.items():
        if outer is not None:
            inner[outer].append(by_key[key])
    false = {key for key, copies in inner.items() if _is_false_call(copies)}
    kept = [reading for reading in evidence.readings if _key(reading) not in false]
    index = {_key(reading): number for number, reading in enumerate(kept)}
    pairs = [
        (index[outer], index[_key(copy)])
        for outer, copies in inner.items()
        if outer not in false
        for copy in copies
        if _key(copy) not in false
    ]
    return kept, pairs


def _barriers(evidence: Evidence) -> set[SpanKey]:
    """Tools and agents: a call below one is not a copy of the call above it."""
    owners: Iterable[Span] = (*(t.span for t in evidence.tools), *(s.span for s in evidence.scopes))
    return {(span.trace_id, span.span_id) for span in owners}


def _is_false_call(inner: Sequence[Reading]) -> bool:
    answered: defaultdict[str, int] = defaultdict(int)
    for reading in inner:
        answered[reading.dialect] += reading.call.reply is not None
    return max(answered.values()) > 1


def _pairs(readings: Sequence[Reading]) -> Iterator[tuple[int, int]]:
    """Pairs of copies that are not nested."""
    if len({reading.dialect for reading in readings}) < 2:
        return
    yield from _pairs_by(readings, lambda call: call.response_id, _are_copies)
    yield from _pairs_by(readings, lambda call: _output_ids(call.reply), _are_copies)
    yield from _pairs_by(readings, lambda call: _output_text(call.reply), _contains)


def _pairs_by(
    readings: Sequence[Reading],
    key_of: Callable[[ModelCall], Hashable | None],
    fits: Callable[[Reading, Reading], bool],
) -> Iterator[tuple[int, int]]:
    """Pairs of readings of two dialects with one key; each takes at most one of the other dialect."""
    buckets: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, reading in enumerate(readings):
        key = key_of(reading.call)
        if key:
            buckets[key].append(index)
    for bucket in buckets.values():
        yield from _pairs_in(bucket, readings, fits)


def _pairs_in(
    bucket: Sequence[int], readings: Sequence[Reading], fits: Callable[[Reading, Reading], bool]
) -> Iterator[tuple[int, int]]:
    """Sweep a bucket in order of time: only calls that are still open can be the outer copy."""
    alone = len({readings[index].dialect for index in bucket}) == len(bucket) and fits is _are_copies
    open_calls: list[int] = []
    taken: set[tuple[int, str]] = set()
    for index in bucket:
        reading = readings[index]
        if not alone:
            limit = reading.call.span.start_ns - _CLOCK_NS
            open_calls = [other for other in open_calls if readings[other].call.span.end_ns >= limit]
        for other in reversed(open_calls):
            free = (other, reading.dialect) not in taken
            if free and readings[other].dialect != reading.dialect and fits(readings[other], reading):
                taken.add((other, reading.dialect))
                yield other, index
                break
        open_calls.append(index)


def _are_copies(left: Reading, right: Reading) -> bool:
    """Readings with one id whose replies do not contradict each other."""
    ids, others = _output_ids(left.call.reply), _output_ids(right.call.reply)
    return not ids or not others or ids == others or left.call.response_id == right.call.response_id


def _contains(outer: Reading, inner: Reading) -> bool:
    """One within the other in time, with the same last message as far as both have one."""
    if not _are_copies(outer, inner) or not _within(inner.call.span, outer.call.span):
        return False
    if outer.call.response_id and inner.call.response_id and outer.call.response_id != inner.call.response_id:
        return False
    last = [call.messages[-1] for call in (outer.call, inner.call) if call.messages]
    return len(last) < 2 or same_message(*last)


def _within(inner: Span, outer: Span) -> bool:
    return (
        outer.rollout_id == inner.rollout_id
        and inner.start_ns >= outer.start_ns - _CLOCK_NS
        and inner.end_ns <= outer.end_ns + _CLOCK_NS
    )


def _output_ids(reply: Message | None) -> frozenset[str]:
    return frozenset(tool_call_ids(reply)) if reply else frozenset()


def _output_text(reply: Message | None) -> Hashable | None:
    if reply is None:
        return None
    names = tuple(tool_names(reply))
    text = message_text(reply)
    return (text, names) if text or names else None


def _merge(copies: Sequence[Reading], tree: SpanTree) -> Call:
    """One call of all its copies: structure from the outermost, content from the fullest."""
    outer_first = sorted(copies, key=lambda copy: time_order(copy.call.span))
    spans = [copy.call.span for copy in outer_first]
    end_ns = max(span.end_ns for span in spans)
    if len(copies) == 1:
        return Call(copies[0].call, spans, spans[0].start_ns, end_ns, flags=set(copies[0].flags))
    ranked = sorted(outer_first, key=lambda copy: _rank(copy, tree), reverse=True)
    best = ranked[0]
    filled: dict[str, Any] = {name: _first(ranked, name) for name in _FILLED}
    filled |= {name: _first(outer_first, name) for name in ("agent", "conversation_id")}
    span = next((copy.call.span for copy in ranked if copy.call.response_token_ids), spans[0])
    read = replace(best.call, span=span, **filled)
    return Call(read, spans, spans[0].start_ns, end_ns, flags=set(_open_flags(best, read)))


def _rank(copy: Reading, tree: SpanTree) -> tuple[int, ...]:
    """How much a copy says; the deeper one wins a tie, being closer to the wire.

    Some frameworks send the results of tools as user turns: their own copy tells what they are.
    """
    call = copy.call
    return (
        call.reply is not None,
        bool(call.messages and call.messages[-1]["role"] == "tool"),
        bool(call.prompt_token_ids and call.response_token_ids),
        bool(call.messages),
        "dropped_attributes" not in copy.flags,
        "truncated_json" not in copy.flags,
        bool(call.reply and (not tool_names(call.reply) or tool_call_ids(call.reply))),
        sum(1 for _ in tree.ancestors(call.span)),
    )


def _first(copies: Iterable[Reading], name: str) -> Any:
    return next((value for copy in copies if (value := getattr(copy.call, name)) is not None), None)


def _open_flags(best: Reading, read: ModelCall) -> Iterator[str]:
    """The best copy's flags, but for those that another copy made good."""
    for flag in best.flags:
        if flag == "stream_without_ids" and read.response_id:
            continue
        if flag == "missing_completion" and read.reply is not None:
            continue
        yield flag


def _key(reading: Reading) -> SpanKey:
    return reading.call.span.trace_id, reading.call.span.span_id
