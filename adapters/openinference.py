"""The OpenInference conventions: the base of every dialect that follows them.

Messages are one attribute per field, so long conversations lose their oldest attributes; the raw
request and reply are in ``input.value`` and ``output.value`` and may be lost as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import Dialect, ModelCall, SpanTree
from milegpo_plugin.adapters.completions import read_completion
from milegpo_plugin.adapters.flat import CallKeys, FlatMessages, flat_tool_calls, message_range
from milegpo_plugin.adapters.messages import chat_message, merge_replies, normal_role, read_messages
from milegpo_plugin.adapters.values import (
    as_count,
    as_name,
    as_text,
    dig,
    first_text,
    indexed,
    parse_json,
)
from milegpo_plugin.types import JSON, Message, Span

_CALL_KEYS: Final = CallKeys("tool_call.id", "tool_call.function.name", "tool_call.function.arguments")


class OpenInferenceDialect(Dialect):
    """Spans that follow OpenInference; subclasses say which are theirs."""

    def is_call(self, span: Span) -> bool:
        """Whether ``span`` is a model call. The kind is set last, so it is never evicted."""
        return span.attributes.get(semconv.OI_SPAN_KIND) == "LLM"

    @override
    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:
        """A span of kind LLM."""
        if not self.is_call(span):
            return None
        attributes = span.attributes
        flat = read_flat_messages(attributes, semconv.OI_INPUT_MESSAGES)
        messages: Sequence[Message] = flat
        output = read_flat_messages(attributes, semconv.OI_OUTPUT_MESSAGES)
        raw = self.read_raw_reply(attributes)
        reply = merge_replies(output) or raw.pop("reply", None)
        raw.pop("reply", None)
        request = parse_json(attributes.get(semconv.OI_INPUT_VALUE))
        if not messages:
            messages = self.read_raw_request(request)
        previous = self.previous_response(attributes, request)
        return ModelCall(
            **{
                **raw,
                "span": span,
                "messages": messages,
                "first_index": flat.first_index,
                "reply": reply,
                "previous_response_id": previous,
                "is_delta": previous is not None,
                "conversation_id": first_text(attributes, semconv.SESSION_ID),
                "model": first_text(attributes, semconv.OI_MODEL) or raw.get("model"),
                "agent": self.agent_of(span),
                "finish_reason": first_text(attributes, semconv.OI_FINISH_REASON) or raw.get("finish_reason"),
                "prompt_tokens": as_count(attributes.get(semconv.OI_PROMPT_TOKENS)),
                "response_tokens": as_count(attributes.get(semconv.OI_COMPLETION_TOKENS)),
                "flags": _flags(attributes, bool(messages), reply),
            }
        )

    def read_raw_reply(self, attributes: Mapping[str, JSON]) -> dict[str, Any]:
        """The fields of ``ModelCall`` that ``output.value`` tells."""
        return read_completion(parse_json(attributes.get(semconv.OI_OUTPUT_VALUE)))

    def read_raw_request(self, request: JSON) -> list[Message]:
        """The messages that ``input.value`` tells."""
        return read_messages(dig(request, "messages") or dig(request, "input"))

    def previous_response(self, attributes: Mapping[str, JSON], request: JSON) -> str | None:
        """The earlier response that a chained Responses request continues."""
        parameters = parse_json(attributes.get(semconv.OI_INVOCATION_PARAMETERS))
        return as_name(dig(parameters, "previous_response_id")) or as_name(
            dig(request, "previous_response_id")
        )

    def agent_of(self, span: Span) -> str | None:
        """The agent that the call span itself names."""
        return first_text(span.attributes, semconv.OI_AGENT_NAME)


def read_flat_messages(attributes: dict[str, JSON], prefix: str) -> FlatMessages:
    """The complete messages under ``prefix``, up to the newest."""
    first, last = message_range(attributes, prefix, ".message.role")
    return FlatMessages(first, last, lambda number: _message(attributes, f"{prefix}{number}.message."))


def _message(attributes: Mapping[str, JSON], base: str) -> Message:
    """One message. Its tool calls may have gaps in their indices, and no empty ``arguments``."""
    role = normal_role(attributes[base + "role"])
    calls = flat_tool_calls(attributes, base + "tool_calls.", _CALL_KEYS) if role == "assistant" else ()
    return chat_message(
        role,
        _content(attributes, base),
        tool_calls=calls,
        tool_call_id=attributes.get(base + "tool_call_id"),
        name=attributes.get(base + "name"),
    )


def _content(attributes: Mapping[str, JSON], base: str) -> JSON:
    """The text, or ``contents.K`` joined when all are texts, else as parts."""
    text = attributes.get(base + "content")
    if text is not None:
        return text
    parts = indexed(attributes, base + "contents.").values()
    if not parts:
        return None
    texts = [part.get("message_content.text") for part in parts]
    if all(isinstance(text, str) for text in texts):
        return "\n".join(str(text) for text in texts)
    return [_part(part) for part in parts]


def _part(part: Mapping[str, JSON]) -> JSON:
    fields = {key.removeprefix("message_content."): value for key, value in part.items()}
    return {"type": as_text(fields.get("type")) or "text", **fields}


def _flags(attributes: Mapping[str, JSON], has_messages: bool, reply: Message | None) -> frozenset[str]:
    values = (attributes.get(semconv.OI_INPUT_VALUE), attributes.get(semconv.OI_OUTPUT_VALUE))
    if semconv.OI_REDACTED in values:
        return frozenset({"redacted_content"})
    return frozenset() if has_messages or reply else frozenset({"no_content"})
