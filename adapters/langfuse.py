"""Langfuse: observations of its SDK (OpenTelemetry spans since version 3) and of its exports.

Input and output are whatever an integration passed: messages of several shapes, a request body,
or a bare text. There are no response ids. LangChain's tools give a whole tool message as output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import AgentScope, Dialect, ModelCall, SpanTree, ToolRun
from milegpo_plugin.adapters.completions import read_completion
from milegpo_plugin.adapters.messages import chat_message, merge_replies, read_messages
from milegpo_plugin.adapters.values import (
    as_count,
    as_name,
    as_text,
    dig,
    first_text,
    parse_arguments,
    parse_json,
)
from milegpo_plugin.types import JSON, Message, Span

_MESSAGE_KEYS: Final = frozenset({"role", "content", "tool_calls", "parts", "type"})


class Langfuse(Dialect):
    """Generations, tools, agents and traces of Langfuse."""

    name = "langfuse"

    @override
    def recognises(self, span: Span) -> bool:
        """By the type of the observation, which every one has."""
        return semconv.LANGFUSE_TYPE in span.attributes

    @override
    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:
        """A generation."""
        attributes = span.attributes
        if _type(span) != "generation":
            return None
        messages = _messages(attributes.get(semconv.LANGFUSE_INPUT), "user")
        output = _structured(attributes.get(semconv.LANGFUSE_OUTPUT))
        fields = read_completion(output) if isinstance(output, dict) and "choices" in output else {}
        reply = fields.pop("reply", None) or merge_replies(_messages(output, "assistant"))
        usage = parse_json(attributes.get(semconv.LANGFUSE_USAGE))
        known: dict[str, Any] = {
            "conversation_id": first_text(attributes, semconv.SESSION_ID, semconv.LANGFUSE_SESSION),
            "model": first_text(attributes, semconv.LANGFUSE_MODEL),
            "prompt_tokens": as_count(dig(usage, "input")),
            "response_tokens": as_count(dig(usage, "output")),
        }
        return ModelCall(
            span=span,
            messages=messages,
            reply=reply,
            flags=frozenset() if messages or reply else frozenset({"no_content"}),
            **{**fields, **{name: value for name, value in known.items() if value is not None}},
        )

    @override
    def read_tool(self, span: Span) -> ToolRun | None:
        """A tool."""
        if _type(span) != "tool":
            return None
        arguments = span.attributes.get(semconv.LANGFUSE_INPUT)
        output = span.attributes.get(semconv.LANGFUSE_OUTPUT)
        message = _structured(output)
        message = message if isinstance(message, dict) and "tool_call_id" in message else {}
        return ToolRun(
            span=span,
            name=span.name,
            arguments=None if arguments is None else parse_arguments(arguments),
            call_id=as_name(message.get("tool_call_id")),
            result=as_text(message.get("content") if message else output),
            failed=span.status == "ERROR" or message.get("status") == "error",
        )

    @override
    def read_agent(self, span: Span) -> AgentScope | None:
        """An agent, or the trace around everything."""
        kind = _type(span)
        if kind not in ("agent", semconv.LANGFUSE_TRACE_TYPE):
            return None
        return AgentScope(
            span=span,
            name=span.name or None if kind == "agent" else None,
            conversation_id=first_text(span.attributes, semconv.SESSION_ID, semconv.LANGFUSE_SESSION),
        )


def _type(span: Span) -> str:
    return str(span.attributes.get(semconv.LANGFUSE_TYPE)).lower()


def _messages(value: JSON, role: str) -> list[Message]:
    """Messages as an integration wrote them; a bare text is one of ``role``."""
    parsed = _structured(value)
    if isinstance(parsed, dict):
        request = parsed.get("messages") or parsed.get("input")
        if request is not None:
            return _messages(request, role)
        parsed = [parsed] if not _MESSAGE_KEYS.isdisjoint(parsed) else as_text(value)
    if isinstance(parsed, Sequence) and not isinstance(parsed, str):
        return read_messages([_message(item, role) for item in parsed])
    return [] if parsed is None else [chat_message(role, as_text(parsed))]


def _message(item: JSON, role: str) -> JSON:
    """LangChain's older callback keeps the tool calls in ``additional_kwargs``."""
    if not isinstance(item, Mapping):
        return {"role": role, "content": as_text(item)}
    calls = item.get("tool_calls") or dig(item, "additional_kwargs", "tool_calls")
    message = {**item, "tool_calls": calls} if calls else dict(item)
    return message if "role" in item or "type" in item else {"role": role, **message}


def _structured(value: JSON) -> JSON:
    """A text that is a JSON object or array as its value; anything else as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    parsed = parse_json(value)
    return value if parsed is None else parsed
