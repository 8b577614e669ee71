"""Messages that were written as one attribute per field: ``prefix.N.role``, ``prefix.N.content``, …

SDKs cap the number of attributes of a span. Python's evicts the oldest keys, so the first
messages of a long conversation vanish and the lowest surviving one may be incomplete.
"""

from __future__ import annotations

from collections.abc import Mapping

from milegpo_plugin.adapters.messages import chat_message, chat_tool_call
from milegpo_plugin.adapters.values import indexed
from milegpo_plugin.types import JSON, Message


def flat_messages(attributes: Mapping[str, JSON], prefix: str) -> tuple[int, list[Message]]:
    """The messages under ``prefix`` and the index of the first one that is complete."""
    return contiguous(
        {number: flat_message(fields) for number, fields in indexed(attributes, prefix).items()}
    )


def flat_message(fields: Mapping[str, JSON]) -> Message | None:
    """One message of ``role``, ``content``, ``tool_call_id``, ``tool_calls.M.{id,name,arguments}``.

    None when the role is missing: the role is written first, so it is evicted first.
    """
    if not fields.get("role"):
        return None
    return chat_message(
        fields["role"],
        fields.get("content"),
        tool_calls=flat_tool_calls(fields, "tool_calls."),
        tool_call_id=fields.get("tool_call_id"),
        name=fields.get("name"),
    )


def flat_tool_calls(fields: Mapping[str, JSON], prefix: str) -> list[dict[str, JSON]]:
    """Tool calls of ``prefix.M.{id,name,arguments}``; the indices need not be dense."""
    if len(fields) < 3:
        return []
    return [
        chat_tool_call(call.get("id"), call.get("name"), call.get("arguments"))
        for call in indexed(fields, prefix).values()
    ]


def contiguous(messages: Mapping[int, Message | None]) -> tuple[int, list[Message]]:
    """The run of complete messages that ends with the newest one, and where it begins."""
    run: list[Message] = []
    expected = None
    for number in sorted(messages, reverse=True):
        message = messages[number]
        if message is None or (expected is not None and number != expected):
            break
        run.append(message)
        expected = number - 1
    run.reverse()
    return (0 if expected is None else expected + 1), run
