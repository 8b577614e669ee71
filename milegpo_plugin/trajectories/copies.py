"""The copies of one model call, and when two sets of copies are one call."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from milegpo_plugin.adapters.messages import message_text, tool_call_ids
from milegpo_plugin.trajectories.calls import same_message, tool_names
from milegpo_plugin.trajectories.evidence import Reading, time_order
from milegpo_plugin.types import Message

_CLOCK_NS: Final = 1_000_000
"""Stamps of one process may differ by this much between two instrumentations."""


@dataclass(eq=False, slots=True)
class Copies:
    """Readings of one call, outermost first, and what they say together."""

    readings: Sequence[Reading]
    dialects: frozenset[str] = field(init=False)
    response_ids: frozenset[str] = field(init=False)
    tool_call_ids: frozenset[str] = field(init=False)
    start_ns: int = field(init=False)
    end_ns: int = field(init=False)

    def __post_init__(self) -> None:
        self.readings = sorted(self.readings, key=lambda reading: time_order(reading.call.span))
        calls = [reading.call for reading in self.readings]
        self.dialects = frozenset(reading.dialect for reading in self.readings)
        self.response_ids = frozenset(call.response_id for call in calls if call.response_id)
        replies = [call.reply for call in calls if call.reply]
        self.tool_call_ids = frozenset(call_id for reply in replies for call_id in tool_call_ids(reply))
        self.start_ns = calls[0].span.start_ns
        self.end_ns = max(call.span.end_ns for call in calls)

    def texts(self) -> set[Hashable]:
        """What the replies say: text and names of the called tools."""
        replies = [reading.call.reply for reading in self.readings if reading.call.reply]
        return {key for reply in replies if any(key := (message_text(reply), tuple(tool_names(reply))))}

    def last_messages(self) -> list[Message]:
        """The last message of each copy's request."""
        return [reading.call.messages[-1] for reading in self.readings if reading.call.messages]


def overlap(left: Copies, right: Copies) -> bool:
    """Whether both were open at one time; ``left`` began first."""
    return left.end_ns >= right.start_ns - _CLOCK_NS


def share_an_id(left: Copies, right: Copies) -> bool:
    """Whether two dialects tell of one call by its ids, without a contradiction."""
    if not left.dialects.isdisjoint(right.dialects) or _differ(left.tool_call_ids, right.tool_call_ids):
        return False
    return not left.response_ids.isdisjoint(right.response_ids) or not _differ(
        left.response_ids, right.response_ids
    )


def share_the_content(left: Copies, right: Copies) -> bool:
    """Whether two dialects tell of one call by its content: one within the other, no id against it.

    The last message of the requests must be the same one, and answer the same tool call.
    """
    if not left.dialects.isdisjoint(right.dialects) or not (_within(left, right) or _within(right, left)):
        return False
    if _differ(left.tool_call_ids, right.tool_call_ids) or _differ(left.response_ids, right.response_ids):
        return False
    return _may_be_one(left.last_messages(), right.last_messages())


def _within(inner: Copies, outer: Copies) -> bool:
    rollouts = {copies.readings[0].call.span.rollout_id for copies in (inner, outer)}
    return (
        len(rollouts) == 1
        and inner.start_ns >= outer.start_ns - _CLOCK_NS
        and inner.end_ns <= outer.end_ns + _CLOCK_NS
    )


def _may_be_one(left: Sequence[Message], right: Sequence[Message]) -> bool:
    if not left or not right:
        return True
    if _differ(_answered(left), _answered(right)):
        return False
    return any(same_message(mine, theirs) for mine in left for theirs in right)


def _answered(messages: Iterable[Message]) -> frozenset[str]:
    return frozenset(message["tool_call_id"] for message in messages if message.get("tool_call_id"))


def _differ(left: frozenset[str], right: frozenset[str]) -> bool:
    """Whether both are known and have nothing in common."""
    return bool(left and right and left.isdisjoint(right))
