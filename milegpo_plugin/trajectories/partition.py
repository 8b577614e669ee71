"""Which traces must be rebuilt together, found span by span, so that not all need be held at once.

Traces are joined by everything that may put two of their calls, or a call and what belongs to it,
into one rollout: ids of platforms, sessions, responses and tool calls; equal turns where every call
is a trace of its own; links and times of rewards; agents that enclose calls of other traces in
time. Two rollouts may end up in one part, which costs memory; it changes nothing but that a reward
that can only be placed by time may find no single rollout.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from milegpo_plugin import semconv
from milegpo_plugin.adapters import AgentScope, ModelCall, SpanTree, dialect_of, read_rewards
from milegpo_plugin.adapters.messages import message_text, tool_call_ids
from milegpo_plugin.adapters.values import first_text
from milegpo_plugin.trajectories.calls import is_incomplete
from milegpo_plugin.trajectories.evidence import MALFORMED
from milegpo_plugin.trajectories.unions import Unions
from milegpo_plugin.types import Message, Span

_LOOKBACK: Final = 24
"""Messages at the end of a request that are looked at: turns may be missing, but not many at once."""
_NO_TREE: Final = SpanTree(())
_SESSION_KEYS: Final = (semconv.SESSION_ID, semconv.CONVERSATION_ID, semconv.LANGFUSE_SESSION)
_TOOL_CALL_KEYS: Final = (semconv.TOOL_CALL_ID, semconv.AGENTOPS_TOOL_CALL_ID)


@dataclass(slots=True)
class _Trace:
    """What one trace tells: keys that it shares with others, and times.

    ``replies`` are keys of answers; they tie a trace only to one whose history shows such a turn.
    ``shown`` are such turns in a trace that may hold their calls itself.
    ``unanswered`` are places where the answer is not known, by call; ``places`` are those where a
    history has an answer, and the answers there that have ids.
    ``parents`` are hashes of span ids, as are the keys of ``calls`` and ``scopes``.
    """

    keys: set[int] = field(default_factory=set)
    replies: set[int] = field(default_factory=set)
    shown: set[int] = field(default_factory=set)
    unanswered: dict[int, int] = field(default_factory=dict)
    places: set[int] = field(default_factory=set)
    parents: dict[int, int] = field(default_factory=dict)
    calls: dict[int, tuple[int, int]] = field(default_factory=dict)
    scopes: dict[int, tuple[int, int]] = field(default_factory=dict)
    loose_ns: list[int] = field(default_factory=list)
    by_platform: bool = False

    def free_scopes(self) -> list[tuple[int, int]]:
        """The times of the agents' runs that may enclose calls of other traces.

        Who links one call to its outermost run links all of them, so only runs without any may.
        """
        linked = {self._outermost_scope(call) for call in self.calls} if self.scopes else set()
        return [time for scope, time in self.scopes.items() if self._outermost_scope(scope) not in linked]

    def _outermost_scope(self, span: int) -> int | None:
        """The scope nearest to the root among ``span`` and its ancestors."""
        found: int | None = None
        node: int | None = span
        for _ in range(len(self.parents) + 1):
            if node is None:
                break
            found = node if node in self.scopes else found
            node = self.parents.get(node)
        return found


class _Interval(NamedTuple):
    """A call or the run of an agent in time."""

    start_ns: int
    end_ns: int
    trace_id: str


class Partition:
    """Traces by what joins them. Every span is read once, when it is added."""

    def __init__(self) -> None:
        self._traces: dict[str, _Trace] = {}

    def mention(self, trace_id: str) -> None:
        """Note that there is such a trace, even if nothing can be read in it."""
        self._traces.setdefault(trace_id, _Trace())

    def add(self, span: Span) -> None:
        """Note what ``span`` shares with other traces; again, when it has got its log records."""
        trace = self._traces.setdefault(span.trace_id, _Trace())
        trace.by_platform = trace.by_platform or span.rollout_id is not None
        trace.keys.update(map(hash, _span_keys(span)))
        if span.parent_id:
            trace.parents[hash(span.span_id)] = hash(span.parent_id)
        with suppress(*MALFORMED):  # whoever rebuilds the trace reports it
            self._read(span, trace)

    def _read(self, span: Span, trace: _Trace) -> None:
        _note_rewards(span, trace)
        span_id = hash(span.span_id)
        dialect = dialect_of(span)
        if dialect is None:
            return
        time = (span.start_ns, span.end_ns)
        call, _, scope = dialect.read(span, _NO_TREE)
        if call is not None:
            trace.calls[span_id] = time
            trace.keys.update(map(hash, _call_keys(call)))
            _note_turns(call, span_id, trace)
        if scope is not None:
            trace.scopes[span_id] = time
            trace.keys.update(map(hash, _scope_keys(scope)))

    def parts(self) -> list[list[str]]:
        """The trace ids of each part; parts and ids in the order in which they were added."""
        unions: Unions[str] = Unions(self._traces)
        first: dict[int, str] = {}
        for trace_id, trace in self._traces.items():
            for key in trace.keys:
                unions.join(first.setdefault(key, trace_id), trace_id)
        for trace_id, trace in self._traces.items():
            for key in trace.shown - trace.replies:
                unions.join(first.setdefault(key, trace_id), trace_id)
        for trace_id, trace in self._traces.items():
            for key in trace.replies & first.keys():
                unions.join(first[key], trace_id)
        for left, right in (*self._answered(), *self._enclosed()):
            unions.join(left, right)
        for loose, owner in self._loose(unions.groups()):
            unions.join(owner, loose)
        return unions.groups()

    def forget(self, trace_ids: Iterable[str]) -> None:
        """Drop traces that have been rebuilt."""
        for trace_id in trace_ids:
            self._traces.pop(trace_id, None)

    def _answered(self) -> Iterator[tuple[str, str]]:
        """Traces with a call whose answer, or its ids, are not known, and traces whose history shows it."""
        owners: dict[int, list[str]] = {}
        for trace_id, trace in self._traces.items():
            for reply in trace.replies:
                owners.setdefault(reply, []).append(trace_id)
            with_children = set(trace.parents.values()) if trace.unanswered else ()
            for call, place in trace.unanswered.items():
                if call not in with_children:
                    owners.setdefault(place, []).append(trace_id)
        for trace_id, trace in self._traces.items() if owners else ():
            for place in trace.places & owners.keys():
                yield from ((owner, trace_id) for owner in owners[place])

    def _enclosed(self) -> Iterator[tuple[str, str]]:
        """Traces with an agent's run, and traces without one whose calls lie within it."""
        scopes = sorted(
            _Interval(*run, trace_id)
            for trace_id, trace in self._traces.items()
            for run in trace.free_scopes()
        )
        calls = sorted(
            [
                _Interval(*call, trace_id)
                for trace_id, trace in self._traces.items()
                if not trace.scopes
                for call in trace.calls.values()
            ],
        )
        waiting = scopes[::-1]
        open_scopes: list[_Interval] = []
        for call in calls if scopes else ():
            while waiting and waiting[-1].start_ns <= call.start_ns:
                open_scopes.append(waiting.pop())
            open_scopes = [scope for scope in open_scopes if scope.end_ns >= call.start_ns]
            for scope in open_scopes:
                if scope.end_ns >= call.end_ns:
                    yield scope.trace_id, call.trace_id

    def _loose(self, groups: Sequence[Sequence[str]]) -> Iterator[tuple[str, str]]:
        """Traces without calls whose rewards or notes belong to the only part they can, by time.

        That is the latest part that began before, unless an earlier one went on when it began.
        """
        parts = sorted(part for group in groups if (part := self._interval(group)) is not None)
        starts = [part.start_ns for part in parts]
        latest_end = list(accumulate((part.end_ns for part in parts), max, initial=0))
        for trace_id, trace in self._traces.items():
            if trace.loose_ns and not trace.calls and not trace.by_platform:
                place = bisect_left(starts, min(trace.loose_ns)) - 1
                if place >= 0 and latest_end[place] <= starts[place]:
                    yield trace_id, parts[place].trace_id

    def _interval(self, group: Sequence[str]) -> _Interval | None:
        """From the first to the last call of a part; None when it has no call."""
        times = [call for trace_id in group for call in self._traces[trace_id].calls.values()]
        if not times:
            return None
        return _Interval(min(times)[0], max(end for _, end in times), group[0])


def _note_rewards(span: Span, trace: _Trace) -> None:
    """What rewards are linked to; when those are that are not, and other notes of the platform."""
    rewards = read_rewards(span)
    for signal in rewards:
        trace.keys.update(hash(("link", value)) for _, value in signal.links)
    loose = [signal.time_ns for signal in rewards if not signal.links]
    if not rewards and span.name.startswith(semconv.AGL_SPANS):
        loose.append(span.start_ns)
    trace.loose_ns.extend(loose)


def _span_keys(span: Span) -> Iterator[Hashable]:
    attributes = span.attributes
    if span.rollout_id is not None:
        yield "rollout", span.rollout_id
    session = first_text(attributes, *_SESSION_KEYS)
    if session is not None:
        yield "session", session
    call_id = first_text(attributes, *_TOOL_CALL_KEYS)
    if call_id is not None:
        yield "call", call_id


def _scope_keys(scope: AgentScope) -> Iterator[Hashable]:
    if scope.conversation_id is not None:
        yield "session", scope.conversation_id


def _call_keys(call: ModelCall) -> Iterator[Hashable]:
    yield "link", call.span.span_id
    yield "link", call.span.trace_id
    if call.conversation_id is not None:
        yield "session", call.conversation_id
    for response_id in (call.response_id, call.previous_response_id):
        if response_id is not None:
            yield "link", response_id
    for call_id in tool_call_ids(call.reply) if call.reply else ():
        yield "call", call_id
    for message in call.messages[-_LOOKBACK:]:
        for known in (*tool_call_ids(message), message.get("tool_call_id")):
            if known:
                yield "call", known


def _note_turns(call: ModelCall, span_id: int, trace: _Trace) -> None:
    """What ties calls that are traces of their own where ids are missing: turns with what is before them.

    The tool calls of some dialects are spans below the call, which may still come.
    """
    for before, message in pairwise(call.messages[-_LOOKBACK:]):
        if message["role"] == "assistant":
            trace.places.add(hash(message_text(before)))
            if tool_call_ids(message):
                trace.places.add(_turn_key(before, message))
            else:
                shown = trace.keys if call.span.parent_id is None else trace.shown
                shown.add(_turn_key(before, message))
    if not call.messages:
        return
    if is_incomplete(call):
        trace.unanswered[span_id] = hash(message_text(call.messages[-1]))
    elif call.reply is not None and not tool_call_ids(call.reply):
        trace.replies.add(_turn_key(call.messages[-1], call.reply))


def _turn_key(before: Message, message: Message) -> int:
    return hash(("turn", message_text(before), message_text(message)))
