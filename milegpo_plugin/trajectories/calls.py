"""A model call after deduplication, and how two messages are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from milegpo_plugin.adapters import AgentScope, ModelCall
from milegpo_plugin.adapters.messages import message_text, tool_call_ids
from milegpo_plugin.types import Message, Span

_START: Final = attrgetter("start_ns")
_TOOL_FINISHES: Final = frozenset({"tool_calls", "tool_call", "function_call", "tool_use"})


@dataclass(eq=False, slots=True)
class Call:
    """One model call that really happened; compared by identity.

    ``read`` is the best reading, ``spans`` are the spans of all its copies, outermost first.
    ``scopes`` are the runs of agents around it, innermost first. ``predecessor`` is the call whose
    conversation it goes on with; ``missing_turns`` counts the assistant turns between the two that
    nobody recorded. ``input_end`` is the number of messages of the request, evicted ones included.
    """

    read: ModelCall
    spans: Sequence[Span]
    start_ns: int
    end_ns: int
    scopes: Sequence[AgentScope] = ()
    agent: str | None = None
    predecessor: Call | None = None
    missing_turns: int = 0
    flags: set[str] = field(default_factory=set)
    input_end: int = field(init=False)

    def __post_init__(self) -> None:
        self.input_end = self.read.first_index + len(self.read.messages)


def call_order(call: Call) -> tuple[int, int, str, str]:
    """Sort key: by start time, then by ids."""
    span = call.spans[0]
    return call.start_ns, call.end_ns, span.trace_id, span.span_id


def in_call_order(calls: Sequence[Call]) -> list[Call]:
    """Calls by ``call_order``; where no two start together the start is the whole key."""
    starts = {call.start_ns for call in calls}
    return sorted(calls, key=_START if len(starts) == len(calls) else call_order)


def conversation_of(call: Call) -> str | None:
    """The id of the outermost session or conversation around the call."""
    outer_first = (scope.conversation_id for scope in reversed(call.scopes) if scope.conversation_id)
    return next(outer_first, call.read.conversation_id)


def is_incomplete(read: ModelCall) -> bool:
    """Whether the answer is missing, or is said to call tools and calls none."""
    if read.reply is None:
        return True
    return read.finish_reason in _TOOL_FINISHES and not read.reply.get("tool_calls")


def is_reply(message: Message, reply: Message | None) -> bool:
    """Whether an assistant turn of a history is ``reply``.

    Tool-call ids decide where both have them. Else the texts must agree, and the names of the
    called tools as far as the history has them: histories lose text, ids or calls.
    """
    if reply is None or message["role"] != "assistant":
        return False
    ids, reply_ids = tool_call_ids(message), tool_call_ids(reply)
    if ids and reply_ids:
        return ids == reply_ids or not set(ids).isdisjoint(reply_ids)
    text, reply_text = message_text(message), message_text(reply)
    names, reply_names = tool_names(message), tool_names(reply)
    if names and reply_names and names != reply_names:
        return False
    if text is None and not names:
        return reply_text is None
    if text is None or reply_text is None:
        return bool(names) and names == reply_names
    return text == reply_text


def same_message(left: Message, right: Message) -> bool:
    """Whether two messages of two histories are one, whatever ids and extras they carry."""
    return left == right or (
        left["role"] == right["role"]
        and message_text(left) == message_text(right)
        and tool_names(left) == tool_names(right)
    )


def tool_names(message: Message) -> list[str]:
    """The names of a message's tool calls, in order."""
    calls = message.get("tool_calls")
    return [call["function"]["name"] for call in calls] if calls else []
