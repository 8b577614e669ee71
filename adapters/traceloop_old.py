"""One attribute per message field: Traceloop 0.2x and 0.3x, for every provider.

``gen_ai.prompt.N.…`` and ``gen_ai.completion.0.…``. The oldest attributes of long conversations
are evicted, the request type first. Version 0.22 writes no tool calls and no ids into the
history, only the first tool call of a reply, and for an assistant turn without text the content
of the message before it. A failed call has no span at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import Dialect, ModelCall, SpanTree
from milegpo_plugin.adapters.flat import (
    PLAIN_KEYS,
    FlatMessages,
    flat_messages,
    flat_tool_calls,
)
from milegpo_plugin.adapters.genai import is_stream, span_finish_reason
from milegpo_plugin.adapters.messages import chat_message, chat_tool_call
from milegpo_plugin.adapters.values import as_count, first_text
from milegpo_plugin.types import JSON, Message, Span

_COMPLETION: Final = semconv.COMPLETION + "0."
_OWN_KEYS: Final = (
    _COMPLETION + "role",
    _COMPLETION + "finish_reason",
    _COMPLETION + "content",
    semconv.PROMPT + "0.role",
)


class TraceloopOld(Dialect):
    """``openai.chat`` spans of old Traceloop versions, and others of their form."""

    name = "traceloop_old"

    @override
    def recognises(self, span: Span) -> bool:
        """By the flattened keys that survive eviction."""
        return any(key in span.attributes for key in _OWN_KEYS)

    @override
    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:
        attributes = span.attributes
        messages = flat_messages(attributes, semconv.PROMPT)
        response_id = first_text(attributes, semconv.RESPONSE_ID)
        streamed = response_id is None and is_stream(attributes)
        return ModelCall(
            span=span,
            messages=_without_repeated_content(messages),
            first_index=messages.first_index,
            reply=_reply(attributes),
            response_id=response_id,
            conversation_id=first_text(attributes, semconv.CONVERSATION_ID, semconv.SESSION_ID),
            model=first_text(attributes, semconv.REQUEST_MODEL, semconv.RESPONSE_MODEL),
            agent=first_text(attributes, semconv.AGENT_NAME),
            finish_reason=first_text(attributes, _COMPLETION + "finish_reason")
            or span_finish_reason(attributes),
            prompt_tokens=as_count(attributes.get(semconv.PROMPT_TOKENS)),
            response_tokens=as_count(attributes.get(semconv.COMPLETION_TOKENS)),
            flags=frozenset({"stream_without_ids"} if streamed else ()),
        )


def _reply(attributes: Mapping[str, JSON]) -> Message | None:
    calls = flat_tool_calls(attributes, _COMPLETION + "tool_calls.", PLAIN_KEYS)
    name = attributes.get(_COMPLETION + "function_call.name")
    if name and not calls:
        calls = [chat_tool_call(None, name, attributes.get(_COMPLETION + "function_call.arguments"))]
    if not calls and not any(key in attributes for key in _OWN_KEYS[:3]):
        return None
    return chat_message("assistant", attributes.get(_COMPLETION + "content"), tool_calls=calls)


def _without_repeated_content(messages: FlatMessages) -> Sequence[Message]:
    """Version 0.22 gives an assistant turn without text the content of the message before it.

    Its history has no tool calls, so a history with some is of another version.
    """
    if len(messages) < 2 or any("tool_call_id" in message for message in messages[-2:]):
        return messages
    return [_cleaned(before, message) for before, message in zip((None, *messages), messages, strict=False)]


def _cleaned(before: Message | None, message: Message) -> Message:
    is_copy = (
        before is not None
        and message["role"] == "assistant" != before["role"]
        and message["content"] == before["content"]
        and "tool_calls" not in message
    )
    return {**message, "content": None} if is_copy else message
