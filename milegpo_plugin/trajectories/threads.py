"""Conversations: which earlier call each call goes on with.

Evidence in this order: the id of the previous response; tool-call ids in the history; an equal
assistant turn at the same place after an equal prefix. Within a rollout that a platform knows, a
call without any such evidence goes on with its agent's last call: agents trim their history.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from milegpo_plugin.adapters.messages import merge_replies, message_text, tool_call_ids
from milegpo_plugin.trajectories.agents import process_of
from milegpo_plugin.trajectories.calls import Call, call_order, is_incomplete, is_reply, same_message
from milegpo_plugin.types import Message

_MAX_CANDIDATES: Final = 16
"""Equal turns at one place that are compared; more than that many at once is noise."""


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
            call.predecessor = last_of_agent.get(call.agent)
        elif any(message["role"] == "assistant" for message in call.read.messages):
            call.flags.add("mid_conversation")
        threads.append(call)
        last_of_agent[call.agent] = call


def order_calls(calls: Sequence[Call]) -> list[Call]:
    """By start time, but never before the predecessor: clocks are coarse, and hosts differ."""
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


@dataclass(slots=True)
class _Threads:
    """Indexes over the calls, and the threads found so far."""

    calls: Sequence[Call]
    by_response: dict[str, Call] = field(default_factory=dict)
    by_tool_call: defaultdict[str, list[Call]] = field(default_factory=lambda: defaultdict(list))
    by_text: defaultdict[tuple[str, int], list[Call]] = field(default_factory=lambda: defaultdict(list))
    by_place: defaultdict[tuple[str, int], list[Call]] = field(default_factory=lambda: defaultdict(list))
    unanswered: defaultdict[int, list[Call]] = field(default_factory=lambda: defaultdict(list))
    root: dict[Call, Call] = field(default_factory=dict)
    tail: dict[Call, Call] = field(default_factory=dict)
    followed: set[Call] = field(default_factory=set)

    def __post_init__(self) -> None:
        for call in self.calls:
            self._index(call)

    def find(self, call: Call) -> _Link | None:
        """The call whose answer ``call``'s history shows last."""
        previous = call.read.previous_response_id
        if previous is not None and previous in self.by_response:
            return _Link(self.by_response[previous], 0)
        dropped = self._dropped_turn(call)
        if dropped is not None:
            return _Link(dropped, 0)
        unknown = 0
        messages = call.read.messages
        place = len(messages) - 1
        while place >= 0:
            found = self._owner_of_result(call, messages[place], place)
            if messages[place]["role"] == "assistant":
                start = _start_of_turn(messages, place)
                found = self._owner_of_turn(call, messages, start, place)
                unknown += found is None
                place = start
            if found is not None:
                return _Link(found, unknown)
            place -= 1
        return None

    def append(self, call: Call) -> None:
        """Put ``call`` at the end of its predecessor's thread, or begin one."""
        predecessor = call.predecessor
        self.root[call] = call if predecessor is None else self.root.get(predecessor, predecessor)
        self.tail[self.root[call]] = call
        if predecessor is not None:
            self.followed.add(predecessor)

    def tail_of(self, link: _Link, call: Call) -> Call:
        """The last call of the thread when turns in between are unknown, else the linked call."""
        if not link.unknown_turns and "truncated_json" not in call.flags:
            return link.call
        return self.tail.get(self.root.get(link.call, link.call), link.call)

    def _index(self, call: Call) -> None:
        reply = call.read.reply
        self.by_place[call.spans[0].trace_id, call.input_end].append(call)
        if call.read.response_id is not None:
            self.by_response.setdefault(call.read.response_id, call)
        if is_incomplete(call.read):
            self.unanswered[call.input_end].append(call)
        if reply is None:
            return
        for call_id in tool_call_ids(reply):
            self.by_tool_call[call_id].append(call)
        text = message_text(reply)
        self.by_text[text or "", call.input_end].append(call)

    def _dropped_turn(self, call: Call) -> Call | None:
        """The latest call of the trace whose request ends among the last messages of ``call``.

        Its own answer is not in the history: some agents drop a turn that failed.
        """
        messages, trace_id = call.read.messages, call.spans[0].trace_id
        for place in range(len(messages) - 1, 0, -1):
            if messages[place]["role"] == "assistant" or messages[place - 1]["role"] == "assistant":
                return None
            candidates = self.by_place.get((trace_id, call.read.first_index + place), ())
            found = self._choose(candidates, call, place, exact=True)
            if found is not None:
                return None if found in self.followed else found
        return None

    def _owner_of_result(self, call: Call, message: Message, place: int) -> Call | None:
        """The call that asked for this tool result."""
        if message["role"] != "tool" or "tool_call_id" not in message:
            return None
        return self._choose(self.by_tool_call.get(message["tool_call_id"], ()), call, place, exact=False)

    def _owner_of_turn(self, call: Call, messages: Sequence[Message], start: int, end: int) -> Call | None:
        """The call that wrote the last of these assistant messages, or all of them together."""
        for place in range(end, start - 1, -1):
            for call_id in tool_call_ids(messages[place]):
                owner = self._choose(self.by_tool_call.get(call_id, ()), call, place, exact=False)
                if owner is not None:
                    return owner
            owner = self._owner_of_text(call, messages[place], place)
            if owner is not None:
                return owner
        merged = merge_replies(messages[start : end + 1]) if end > start else None
        return self._owner_of_text(call, merged, start) if merged is not None else None

    def _owner_of_text(self, call: Call, message: Message, place: int) -> Call | None:
        """The call whose request ends at ``place`` and whose answer is ``message``, or is unknown."""
        end = call.read.first_index + place
        same_text = self.by_text.get((message_text(message) or "", end), ())
        candidates = [other for other in same_text if is_reply(message, other.read.reply)]
        return self._choose(candidates, call, place, exact=True) or self._choose(
            self.unanswered.get(end, ()), call, place, exact=True
        )

    def _choose(self, candidates: Iterable[Call], call: Call, place: int, *, exact: bool) -> Call | None:
        """The latest earlier candidate, one that nobody follows yet before others.

        Ids are trusted when they are unique. Repeated ids (some servers count from 0 in every
        reply) and texts need an equal prefix.
        """
        others = [c for c in candidates if c is not call]
        if not exact and len(others) < 2:
            return next((c for c in others if not _descends(c, call)), None)
        earlier = [c for c in others if call_order(c) < call_order(call)]
        near = sorted(
            earlier,
            key=lambda c: (c not in self.followed, _shares_trace(c, call), call_order(c)),
            reverse=True,
        )
        fitting = [c for c in near[:_MAX_CANDIDATES] if _is_continuation(c, call, place)]
        rivals = [c for c in fitting if c not in self.followed]
        if len(rivals) > 1 and _shares_trace(rivals[0], call) == _shares_trace(rivals[1], call):
            call.flags.add("ambiguous_thread")
        return fitting[0] if fitting else None


def _is_continuation(earlier: Call, call: Call, place: int) -> bool:
    """Whether ``earlier``'s request is the history of ``call`` up to ``place``, as far as both have it.

    A system prompt may change between agents of one conversation.
    """
    if process_of(earlier.spans[0]) != process_of(call.spans[0]):
        return False
    end = call.read.first_index + place
    if earlier.input_end > end or earlier.end_ns > call.start_ns:
        return False
    left, right = earlier.read, call.read
    first = max(left.first_index, right.first_index)
    mine = left.messages[first - left.first_index :]
    theirs = right.messages[first - right.first_index : earlier.input_end - right.first_index]
    return len(mine) == len(theirs) and all(
        a["role"] == b["role"] == "system" or same_message(a, b) for a, b in zip(mine, theirs, strict=True)
    )


def _shares_trace(left: Call, right: Call) -> bool:
    return left.spans[0].trace_id == right.spans[0].trace_id


def _start_of_turn(messages: Sequence[Message], end: int) -> int:
    """The start of the run of assistant messages that ends at ``end``."""
    start = end
    while start and messages[start - 1]["role"] == "assistant":
        start -= 1
    return start


def _descends(call: Call, ancestor: Call) -> bool:
    """Whether ``call`` goes on with ``ancestor``; only a call that began later can."""
    node: Call | None = call if call_order(call) > call_order(ancestor) else None
    while node is not None and node is not ancestor:
        node = node.predecessor
    return node is ancestor
