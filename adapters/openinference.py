"""The OpenInference conventions: the base of every dialect that follows them.

Messages are one attribute per field, so long conversations lose their oldest attributes; the raw
request and reply are in ``input.value`` and ``output.value`` and may be lost as well. The kind of a
span (LLM, TOOL, AGENT, CHAIN, …) is set last, so it never is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import AgentScope, Dialect, ModelCall, SpanTree, ToolRun
from milegpo_plugin.adapters.completions import read_completion
from milegpo_plugin.adapters.flat import CallKeys, FlatMessages, flat_tool_calls, message_range
from milegpo_plugin.adapters.messages import (
    chat_message,
    merge_replies,
    normal_role,
    read_instructions,
    read_messages,
)
from milegpo_plugin.adapters.values import (
    as_count,
    as_name,
    as_text,
    dig,
    first_text,
    indexed,
    parse_json,
    parse_repr,
)
from milegpo_plugin.types import JSON, Message, Span

_CALL_KEYS: Final = CallKeys("tool_call.id", "tool_call.function.name", "tool_call.function.arguments")


class OpenInferenceDialect(Dialect):
    """Spans that follow OpenInference; subclasses say which are theirs."""

    def is_call(self, span: Span) -> bool:
        """Whether ``span`` is a model call."""
        return span.attributes.get(semconv.OI_SPAN_KIND) == "LLM"

    @override
    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:
        """A span of kind LLM."""
        if not self.is_call(span):
            return None
        attributes = span.attributes
        request = parse_json(attributes.get(semconv.OI_INPUT_VALUE))
        messages, first_index = self.read_request(attributes, request)
        raw = self.read_raw_reply(attributes)
        reply = self.read_reply(attributes, raw.pop("reply", None))
        previous = self.previous_response(attributes, request)
        known: dict[str, Any] = {
            "previous_response_id": previous,
            "conversation_id": first_text(attributes, semconv.SESSION_ID),
            "model": first_text(attributes, semconv.OI_MODEL),
            "agent": self.agent_of(span),
            "finish_reason": first_text(attributes, semconv.OI_FINISH_REASON),
            "prompt_tokens": as_count(attributes.get(semconv.OI_PROMPT_TOKENS)),
            "response_tokens": as_count(attributes.get(semconv.OI_COMPLETION_TOKENS)),
        }
        return ModelCall(
            span=span,
            messages=messages,
            first_index=first_index,
            reply=reply,
            is_delta=previous is not None,
            flags=_flags(attributes, bool(messages), reply),
            **{**raw, **{name: value for name, value in known.items() if value is not None}},
        )

    def read_request(self, attributes: dict[str, JSON], request: JSON) -> tuple[Sequence[Message], int]:
        """The messages and the place of the first one.

        The raw request stands in where the flattened messages lost their beginning.
        """
        flat = read_flat_messages(attributes, semconv.OI_INPUT_MESSAGES)
        if flat and not flat.first_index:
            return flat, 0
        raw = self.read_raw_request(request)
        return (flat, flat.first_index) if len(raw) < len(flat) else (raw, 0)

    def read_raw_request(self, request: JSON) -> list[Message]:
        """The messages that ``input.value`` tells."""
        instructions = read_instructions(dig(request, "instructions") or dig(request, "system"))
        return [*instructions, *read_messages(dig(request, "messages") or dig(request, "input"))]

    def read_raw_reply(self, attributes: Mapping[str, JSON]) -> dict[str, Any]:
        """The fields of ``ModelCall`` that ``output.value`` tells."""
        return read_completion(parse_json(attributes.get(semconv.OI_OUTPUT_VALUE)))

    def read_reply(self, attributes: dict[str, JSON], raw: Message | None) -> Message | None:
        """The assistant message: the flattened one, else that of ``output.value``."""
        return merge_replies(read_flat_messages(attributes, semconv.OI_OUTPUT_MESSAGES)) or raw

    def previous_response(self, attributes: Mapping[str, JSON], request: JSON) -> str | None:
        """The earlier response that a chained Responses request continues."""
        parameters = parse_json(attributes.get(semconv.OI_INVOCATION_PARAMETERS))
        return as_name(dig(parameters, "previous_response_id")) or as_name(
            dig(request, "previous_response_id")
        )

    def agent_of(self, span: Span) -> str | None:
        """The agent that the call span itself names."""
        return first_text(span.attributes, semconv.OI_AGENT_NAME)

    @override
    def read_tool(self, span: Span) -> ToolRun | None:
        """A span of kind TOOL."""
        attributes = span.attributes
        if attributes.get(semconv.OI_SPAN_KIND) != "TOOL":
            return None
        return ToolRun(
            span=span,
            name=first_text(attributes, semconv.OI_TOOL_NAME) or span.name,
            arguments=self.read_arguments(attributes),
            call_id=first_text(attributes, semconv.OI_TOOL_CALL_ID, semconv.OI_TOOL_ID),
            result=as_text(attributes.get(semconv.OI_OUTPUT_VALUE)),
            failed=span.status == "ERROR",
        )

    def read_arguments(self, attributes: Mapping[str, JSON]) -> dict[str, JSON] | None:
        """The arguments of a tool: an object, or the bare value of its only parameter."""
        value = attributes.get(semconv.OI_INPUT_VALUE)
        parsed = parse_repr(value)
        if isinstance(parsed, dict):
            return {str(name): item for name, item in parsed.items()}
        schema = parse_json(attributes.get(semconv.OI_TOOL_PARAMETERS))
        names = list(dig(schema, "properties") or ())
        return {names[0]: value} if len(names) == 1 and value is not None else None

    @override
    def read_agent(self, span: Span) -> AgentScope | None:
        """A span of kind AGENT."""
        if span.attributes.get(semconv.OI_SPAN_KIND) != "AGENT":
            return None
        return AgentScope(
            span=span,
            name=self.agent_of(span) or first_text(span.attributes, semconv.OI_GRAPH_NODE),
            conversation_id=first_text(span.attributes, semconv.SESSION_ID),
        )


def is_from(span: Span, library: str) -> bool:
    """Whether the Python or the JavaScript instrumentation of ``library`` wrote ``span``."""
    return span.scope in (
        semconv.OI_SCOPE + library,
        semconv.OI_JS_SCOPE + library.replace("_", "-"),
    )


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
