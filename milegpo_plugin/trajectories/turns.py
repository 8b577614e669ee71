"""Indexes of the calls so far by what their answers say, and the test of a continuation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Final

from milegpo_plugin.adapters.messages import message_text, tool_call_ids
from milegpo_plugin.trajectories.agents import same_process
from milegpo_plugin.trajectories.calls import Call, conversation_of, is_incomplete, same_message
from milegpo_plugin.types import Message

_MAX_CANDIDATES: Final = 16
"""Equal turns at one place that are compared; more than that many at once is noise."""


class TurnIndex:
    """Calls by key, in the order in which they were added, which is the order of time."""

    def __init__(self) -> None:
        self._open: defaultdict[Hashable, dict[Call, None]] = defaultdict(dict)
        self._followed: defaultdict[Hashable, list[Call]] = defaultdict(list)
        self._keys: defaultdict[Call, dict[Hashable, None]] = defaultdict(dict)

    def add(self, key: Hashable, call: Call) -> None:
        """Note a call that nobody follows yet."""
        self._open[key][call] = None
        self._keys[call][key] = None

    def follow(self, call: Call) -> None:
        """Note that some call goes on with ``call``."""
        for key in self._keys.pop(call, ()):
            del self._open[key][call]
            self._followed[key].append(call)

    def before(self, key: Hashable, call: Call) -> Iterator[Call]:
        """The latest calls that ended before ``call``: those that nobody follows first."""
        for members in (self._open.get(key, {}), self._followed.get(key, [])):
            ended = (other for other in reversed(members) if other.end_ns <= call.start_ns)
            yield from islice(ended, _MAX_CANDIDATES)

    def is_open(self, call: Call) -> bool:
        """Whether nobody follows ``call``."""
        return call in self._keys


def contested_calls(calls: Sequence[Call]) -> set[Call]:
    """Calls with an unknown answer for which the histories of other calls show different ones.

    Nothing tells which of those calls go on with them.
    """
    incomplete = [call for call in calls if is_incomplete(call.read) and call.read.messages]
    shown: defaultdict[tuple[int, str | None], set[Hashable]] = defaultdict(set)
    ends = {call.input_end for call in incomplete}
    for call in calls if ends else ():
        messages, first = call.read.messages, call.read.first_index
        for end in ends:
            if 0 < end - first < len(messages) and messages[end - first]["role"] == "assistant":
                shown[end, message_text(messages[end - first - 1])].add(_answer(messages, end - first))
    return {call for call in incomplete if len(shown[call.input_end, _last_text(call)]) > 1}


def _answer(messages: Sequence[Message], start: int) -> Hashable:
    """What tells the turn at ``start`` from others: its tool calls, else its text."""
    turn = takewhile(lambda message: message["role"] == "assistant", messages[start:])
    said = [(tuple(tool_call_ids(message)), message_text(message)) for message in turn]
    ids = frozenset(call_id for calls, _ in said for call_id in calls)
    return ids or tuple(text for _, text in said)


def _last_text(call: Call) -> str | None:
    return message_text(call.read.messages[-1])


def is_continuation(earlier: Call, call: Call, place: int) -> bool:
    """Whether ``earlier``'s request is the history of ``call`` up to ``place``, as far as both have it.

    A system prompt may change between agents of one conversation. A run of an agent goes on with
    another run only when that one has ended.
    """
    if earlier is call or not same_process(earlier.spans[0], call.spans[0]):
        return False
    if not _may_be_one_run(earlier, call):
        return False
    if earlier.input_end > call.read.first_index + place or earlier.end_ns > call.start_ns:
        return False
    left, right = earlier.read, call.read
    first = max(left.first_index, right.first_index)
    mine = left.messages[first - left.first_index :]
    theirs = right.messages[first - right.first_index : earlier.input_end - right.first_index]
    return len(mine) == len(theirs) and all(
        a["role"] == b["role"] == "system" or same_message(a, b) for a, b in zip(mine, theirs, strict=True)
    )


def _may_be_one_run(earlier: Call, call: Call) -> bool:
    """By the conversation where both name one, else by the outermost runs of agents around them.

    Runs of one conversation may overlap: a team passes its messages on.
    """
    mine, theirs = conversation_of(earlier), conversation_of(call)
    if mine is not None and theirs is not None:
        return mine == theirs
    if not earlier.scopes or not call.scopes or earlier.scopes[-1] is call.scopes[-1]:
        return True
    return earlier.scopes[-1].span.end_ns <= call.scopes[-1].span.start_ns


def share_a_trace(left: Call, right: Call) -> bool:
    """Whether two calls are spans of one trace."""
    return left.spans[0].trace_id == right.spans[0].trace_id
