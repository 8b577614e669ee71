"""Conversations: which earlier call each call goes on with.

Evidence in this order: the id of the previous response; tool-call ids in the history; an equal
assistant turn at the same place after an equal prefix. Within a rollout that a platform knows, a
call without any such evidence goes on with its agent's last call: agents trim their history.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

from milegpo_plugin.adapters.messages import merge_replies, message_text, tool_call_ids
from milegpo_plugin.trajectories.calls import Call, call_order, is_incomplete, is_reply
from milegpo_plugin.trajectories.turns import TurnIndex, contested_calls, is_continuation, share_a_trace
from milegpo_plugin.types import Message


class _Link(NamedTuple):
    call: Call
    unknown_turns: int


def link_calls(calls: Sequence[Call], *, one_rollout: bool) -> None:
    """Set the predecessor of every call.

    Args:
        calls: calls in order of time.
        one_rollout: they are one rollout for sure, so every agent has one conversation.
    """
    threads = _Threads(calls)
    last_of_agent: dict[str | None, Call] = {}
    for call in calls:
        link = threads.find(call)
        if link is not None:
            call.predecessor, call.missing_turns = threads.tail_of(link, call), link.unknown_turns
        elif one_rollout:
            last = last_of_agent.get(call.agent)
            call.predecessor = None if last is None or threads.descends(last, call) else last
        elif any(message["role"] == "assistant" for message in call.read.messages):
            call.flags.add("mid_conversation")
        threads.append(call)
        last_of_agent[call.agent] = call


def order_calls(calls: Sequence[Call]) -> list[Call]:
    """By start time, but never before the predecessor: clocks are coarse, and hosts differ."""
    if _are_ordered(calls):
        return list(calls)
    members = set(calls)
    followers: defaultdict[Call, list[Call]] = defaultdict(list)
    ready: list[tuple[tuple[int, int, str, str], int, Call]] = []
    for number, call in enumerate(calls):
        if call.predecessor in members and call.predecessor is not None:
            followers[call.predecessor].append(call)
        else:
            heapq.heappush(ready, (call_order(call), number, call))
    ordered: list[Call] = []
    while ready:
        _, number, call = heapq.heappop(ready)
        ordered.append(call)
        for follower in followers[call]:
            heapq.heappush(ready, (call_order(follower), number, follower))
    return ordered


def _are_ordered(calls: Sequence[Call]) -> bool:
    """Whether every call starts after the one before it, and none goes on with a later one."""
    places = {call: place for place, call in enumerate(calls)}
    return all(before.start_ns < call.start_ns for before, call in pairwise(calls)) and all(
        call.predecessor is None or places.get(call.predecessor, -1) < place for call, place in places.items()
    )


class _Threads:
    """What the calls so far said, and the threads found so far."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._by_response: dict[str, Call] = {}
        self._by_tool_call: dict[str, Call | None] = {}
        self._turns = TurnIndex()
        self._root: dict[Call, Call] = {}
        self._tail: dict[Call, Call] = {}
        self._contested = contested_calls(calls)
        self._unindexed: list[Call] = []
        self._traces: set[str] = set()
        self._rivals: set[Call] = set()
        self._longest: dict[str, int] = {}
        self._looks_ahead = False
        for call in calls:
            trace_id = call.spans[0].trace_id
            self._longest[trace_id] = max(self._longest.get(trace_id, 0), call.input_end)
            if call.read.response_id is not None:
                self._by_response.setdefault(call.read.response_id, call)
            for call_id in tool_call_ids(call.read.reply) if call.read.reply else ():
                known = self._by_tool_call.get(call_id, call)
                self._by_tool_call[call_id] = call if known is call else None

    def find(self, call: Call) -> _Link | None:
        """The call whose answer ``call``'s history shows last."""
        named = self._by_response.get(call.read.previous_response_id or "") or self._dropped_turn(call)
        if named is not None and not self.descends(named, call):
            return _Link(named, 0)
        distant: _Link | None = None
        unknown = 0
        messages = call.read.messages
        place = len(messages) - 1
        while place >= 0:
            message = messages[place]
            found = self._owner_of_result(call, message)
            if message["role"] == "assistant":
                start = _start_of_turn(messages, place)
                found = self._owner_of_turn(call, messages, start, place)
                if found is not None and self._only_says_the_same(found, call, messages[start : place + 1]):
                    distant, found = distant or self._distant(found, unknown), None
                unknown += found is None
                place = start
            if found is not None:
                return _Link(found, unknown)
            place -= 1
        return distant

    def _only_says_the_same(self, found: Call, call: Call, turn: Sequence[Message]) -> bool:
        """Whether ``found`` said the same in another trace, while either trace tells where it goes on.

        The call that wrote the turn may be lost: another rollout of the task often says the same.
        """
        if share_a_trace(found, call):
            return False
        if call.spans[0].trace_id not in self._traces and not self._goes_on(found):
            return False
        said = tool_call_ids(found.read.reply) if found.read.reply else []
        return not any(call_id in said for message in turn for call_id in tool_call_ids(message))

    def _distant(self, found: Call, unknown: int) -> _Link | None:
        """A link across traces, unless ``found``'s own trace goes on with it."""
        return None if self._goes_on(found) else _Link(found, unknown)

    def _goes_on(self, call: Call) -> bool:
        """Whether a call of the same trace has a longer history."""
        return self._longest[call.spans[0].trace_id] > call.input_end

    def append(self, call: Call) -> None:
        """Put ``call`` at the end of its predecessor's thread, or begin one."""
        predecessor = call.predecessor
        self._looks_ahead |= predecessor is not None and predecessor not in self._root
        self._root[call] = call if predecessor is None else self._root.get(predecessor, predecessor)
        self._tail[self._root[call]] = call
        self._unindexed.append(call)
        self._traces.add(call.spans[0].trace_id)

    def _index_turns(self) -> None:
        """Index the turns of the calls that were appended since: many are linked by ids alone."""
        for call in self._unindexed:
            self._index(call)
        self._unindexed.clear()

    def _index(self, call: Call) -> None:
        """Note what ``call`` was asked and what it said, and that its predecessor is followed."""
        if call.predecessor is not None:
            self._turns.follow(call.predecessor)
        self._turns.add((call.spans[0].trace_id, call.input_end), call)
        reply = call.read.reply
        if is_incomplete(call.read):
            self._turns.add(call.input_end, call)
        if reply is not None:
            self._turns.add((message_text(reply) or "", call.input_end), call)
            for call_id in tool_call_ids(reply):
                if self._by_tool_call[call_id] is None:
                    self._turns.add((call_id, call.input_end, "repeated id"), call)

    def tail_of(self, link: _Link, call: Call) -> Call:
        """The linked call; or the last one of its thread, when turns in between are not known."""
        cut = "truncated_json" in call.flags or (
            call.read.span.dropped_attributes and not call.read.first_index
        )
        if not link.unknown_turns and not cut:
            return link.call
        tail = self._tail.get(self._root.get(link.call, link.call), link.call)
        return link.call if self.descends(tail, call) else tail

    def descends(self, call: Call, ancestor: Call) -> bool:
        """Whether ``call`` is ``ancestor``, which is being linked, or goes on with it.

        None goes on with it yet, unless a call was linked to a later one: clocks are coarse and differ.
        """
        node: Call | None = call if self._looks_ahead else None
        while node is not None and node is not ancestor:
            node = node.predecessor
        return call is ancestor or node is ancestor

    def _dropped_turn(self, call: Call) -> Call | None:
        """The latest call of the trace whose request ends among the last messages of ``call``.

        Its own answer is not in the history: some agents drop a turn that failed.
        """
        messages, trace_id = call.read.messages, call.spans[0].trace_id
        for place in range(len(messages) - 1, 0, -1):
            if messages[place]["role"] == "assistant" or messages[place - 1]["role"] == "assistant":
                return None
            found = self._latest((trace_id, call.read.first_index + place), call, place)
            if found is not None:
                return found if self._turns.is_open(found) else None
        return None

    def _owner_of_result(self, call: Call, message: Message) -> Call | None:
        """The call that asked for this tool result, if its id is unique."""
        owner = (
            self._by_tool_call.get(message.get("tool_call_id") or "") if message["role"] == "tool" else None
        )
        return None if owner is None or self.descends(owner, call) else owner

    def _owner_of_turn(self, call: Call, messages: Sequence[Message], start: int, end: int) -> Call | None:
        """The call that wrote the last of these assistant messages, or all of them together."""
        turn = messages[start : end + 1]
        turn_ids = frozenset(call_id for message in turn for call_id in tool_call_ids(message))
        for place in range(end, start - 1, -1):
            for call_id in tool_call_ids(messages[place]):
                owner = self._owner_of_id(call_id, call, place)
                if owner is not None:
                    return owner
            owner = self._owner_of_text(call, messages[place], place, turn_ids)
            if owner is not None:
                return owner
        merged = merge_replies(turn) if end > start else None
        return self._owner_of_text(call, merged, start, turn_ids) if merged is not None else None

    def _owner_of_id(self, call_id: str, call: Call, place: int) -> Call | None:
        """The call that asked with this id; some servers count from 0 in every reply."""
        owner = self._by_tool_call.get(call_id)
        if owner is not None:
            return None if self.descends(owner, call) else owner
        return self._latest((call_id, call.read.first_index + place, "repeated id"), call, place)

    def _owner_of_text(
        self, call: Call, message: Message, place: int, turn_ids: frozenset[str]
    ) -> Call | None:
        """The call whose request ends at ``place`` and whose answer is ``message``, or is unknown.

        ``turn_ids`` are the tool calls of the whole turn: an answer with others is another one.
        """
        end = call.read.first_index + place
        said = self._latest((message_text(message) or "", end), call, place, message, turn_ids)
        return said or self._latest(end, call, place)

    def _latest(
        self,
        key: Hashable,
        call: Call,
        place: int,
        reply: Message | None = None,
        turn_ids: frozenset[str] = frozenset(),
    ) -> Call | None:
        """The latest earlier call under ``key`` that ``call`` goes on with, one that nobody follows first."""
        self._index_turns()
        fitting = [
            other
            for other in self._turns.before(key, call)
            if (reply is None or is_reply(reply, other.read.reply))
            and other not in self._contested
            and not _calls_others(other.read.reply, turn_ids)
            and is_continuation(other, call, place)
            and not self.descends(other, call)
        ]
        rivals = [other for other in fitting if self._turns.is_open(other)]
        near = [other for other in rivals if share_a_trace(other, call)] or rivals
        if len(near) > 1:
            self._rivals.update(near)
        found = next(iter(near or fitting), None)
        if found is not None and (found in self._rivals or self._is_taken(found, call)):
            call.flags.add("ambiguous_thread")
        return found

    def _is_taken(self, found: Call, call: Call) -> bool:
        """Whether a call of another trace goes on with ``found`` already."""
        return not self._turns.is_open(found) and not share_a_trace(found, call)


def _calls_others(reply: Message | None, turn_ids: frozenset[str]) -> bool:
    """Whether both a reply and a turn call tools, and not the same ones."""
    ids = tool_call_ids(reply) if reply is not None and turn_ids else ()
    return bool(ids) and turn_ids.isdisjoint(ids)


def _start_of_turn(messages: Sequence[Message], end: int) -> int:
    """The start of the run of assistant messages that ends at ``end``."""
    start = end
    while start and messages[start - 1]["role"] == "assistant":
        start -= 1
    return start
