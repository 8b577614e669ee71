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
from milegpo_plugin.adapters.messages import tool_call_ids
from milegpo_plugin.trajectories.ancestors import nearest_ancestors
from milegpo_plugin.trajectories.calls import Call, in_call_order, tool_names
from milegpo_plugin.trajectories.copies import Copies, overlap, share_an_id, share_the_content
from milegpo_plugin.trajectories.evidence import Evidence, Reading
from milegpo_plugin.trajectories.unions import Unions
from milegpo_plugin.types import Span

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
    if not nested and len({reading.dialect for reading in readings}) < 2:
        calls = in_call_order([_only(reading) for reading in readings])
    else:
        calls = in_call_order([_merge(copy, evidence.tree) for copy in _join(readings, nested)])
    evidence.counts["duplicate_calls"] = len(evidence.readings) - len(calls)
    return calls


def _join(readings: Sequence[Reading], nested: Iterable[tuple[int, int]]) -> list[Copies]:
    """The copies of each call: those that are nested, and those of other dialects that tell of the same."""
    unions = Unions(range(len(readings)))
    for outer, inner in nested:
        unions.join(outer, inner)
    copies = [Copies([readings[index] for index in group]) for group in unions.groups()]
    if len({dialect for copy in copies for dialect in copy.dialects}) > 1:
        copies = _join_by(copies, lambda copy: copy.response_ids, share_an_id)
        copies = _join_by(
            copies, lambda copy: [copy.tool_call_ids] if copy.tool_call_ids else [], share_an_id
        )
        copies = _join_by(copies, Copies.texts, share_the_content)
    return copies


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
    if not any(nearest.values()):
        return evidence.readings, []
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


def _join_by(
    copies: Sequence[Copies],
    keys_of: Callable[[Copies], Iterable[Hashable]],
    fits: Callable[[Copies, Copies], bool],
) -> list[Copies]:
    """Join the copies that have a key in common and fit, each with one of another dialect at most."""
    buckets: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index in sorted(range(len(copies)), key=lambda index: copies[index].start_ns):
        for key in keys_of(copies[index]):
            buckets[key].append(index)
    unions = Unions(range(len(copies)))
    for bucket in buckets.values():
        if len(bucket) > 1:
            _sweep(bucket, copies, fits, unions)
    return [
        copies[group[0]]
        if len(group) == 1
        else Copies([r for index in group for r in copies[index].readings])
        for group in unions.groups()
    ]


def _sweep(
    bucket: Sequence[int],
    copies: Sequence[Copies],
    fits: Callable[[Copies, Copies], bool],
    unions: Unions[int],
) -> None:
    """Go through a bucket in order of time: only a call that is still open can be the outer copy.

    An id that is there once for each dialect is trusted whatever the clocks say.
    """
    trusted = fits is share_an_id and len(bucket) == len({d for i in bucket for d in copies[i].dialects})
    open_copies: list[int] = []
    taken: set[tuple[int, str]] = set()
    for index in bucket:
        mine = copies[index]
        if not trusted:
            open_copies = [other for other in open_copies if overlap(copies[other], mine)]
        for other in reversed(open_copies):
            slots = {(other, dialect) for dialect in mine.dialects}
            if slots.isdisjoint(taken) and fits(copies[other], mine):
                taken |= slots
                unions.join(other, index)
                break
        open_copies.append(index)


def _only(reading: Reading) -> Call:
    """The call of a reading without copies."""
    call, span = reading.call, reading.call.span
    made = Call(call, (span,), span.start_ns, span.end_ns)
    made.flags.update(reading.flags)
    return made


def _merge(copies: Copies, tree: SpanTree) -> Call:
    """One call of all its copies: structure from the outermost, content from the fullest."""
    if len(copies.readings) == 1:
        return _only(copies.readings[0])
    spans = [reading.call.span for reading in copies.readings]
    ranked = sorted(copies.readings, key=lambda reading: _rank(reading, tree), reverse=True)
    best = ranked[0]
    filled: dict[str, Any] = {name: _first(ranked, name) for name in _FILLED}
    filled |= {name: _first(copies.readings, name) for name in ("agent", "conversation_id")}
    span = next((copy.call.span for copy in ranked if copy.call.response_token_ids), spans[0])
    read = replace(best.call, span=span, **filled)
    return Call(read, spans, copies.start_ns, copies.end_ns, flags=set(_open_flags(best, read)))


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
