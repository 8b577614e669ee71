"""Logfire for the OpenAI Agents SDK: trace > task > agent run > turn > model call + function.

Spans are told by the template of their message. Values are JSON strings under plain names; a chat
completion has ``input`` and ``output`` (its ``request_data`` already contains the reply), a
response has ``raw_input`` and ``response``. Function spans have no call id. Logfire replaces what
looks like a secret ("session" is enough) by a note, also within messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import AgentScope, Dialect, ModelCall, SpanTree, ToolRun
from milegpo_plugin.adapters.completions import read_completion
from milegpo_plugin.adapters.messages import (
    chat_message,
    merge_replies,
    read_instructions,
    read_messages,
)
from milegpo_plugin.adapters.values import (
    as_count,
    as_text,
    dig,
    first_text,
    parse_arguments,
    parse_json,
)
from milegpo_plugin.types import JSON, Message, Span

_CHAT: Final = "Chat completion with {gen_ai.request.model!r}"
_RESPONSE: Final = "Responses API with {gen_ai.request.model!r}"
_FUNCTION: Final = "Function: {name}"
_AGENT: Final = "Agent run: {name!r}"
_TRACE: Final = "OpenAI Agents trace: {name}"
_TEMPLATES: Final = frozenset({_CHAT, _RESPONSE, _FUNCTION, _AGENT, _TRACE})
_CONTENT: Final = frozenset({"input", "output", "raw_input", "response", "events"})
_NO_GROUP: Final = ("null", "[Scrubbed due to")


class LogfireOpenAIAgents(Dialect):
    """Spans of the OpenAI Agents SDK as Logfire writes them."""

    name = "logfire_openai_agents"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope, else by the template of the message."""
        return span.scope == semconv.LOGFIRE_AGENTS_SCOPE or _template(span) in _TEMPLATES

    @override
    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:
        """A chat completion, or a call of the Responses API."""
        attributes = span.attributes
        template = _template(span)
        if template == _RESPONSE:
            fields = _read_response(attributes)
        elif template == _CHAT:
            fields = _read_chat(attributes)
        else:
            return None
        known: dict[str, Any] = {
            "response_id": first_text(attributes, semconv.RESPONSE_ID),
            "model": first_text(attributes, semconv.REQUEST_MODEL, semconv.RESPONSE_MODEL),
            "prompt_tokens": as_count(attributes.get(semconv.INPUT_TOKENS)),
            "response_tokens": as_count(attributes.get(semconv.OUTPUT_TOKENS)),
        }
        told = {name: value for name, value in known.items() if value is not None}
        return ModelCall(**{"span": span, **fields, **told, "flags": _flags(attributes)})

    @override
    def read_tool(self, span: Span) -> ToolRun | None:
        """A function tool. The SDK hides why it failed; its text is what the model gets."""
        attributes = span.attributes
        if _template(span) != _FUNCTION:
            return None
        return ToolRun(
            span=span,
            name=first_text(attributes, "name") or "",
            arguments=parse_arguments(attributes.get("input")),
            result=as_text(attributes.get("output")),
            failed=span.status == "ERROR",
        )

    @override
    def read_agent(self, span: Span) -> AgentScope | None:
        """The run of an agent, or the trace around all runs, which knows the group."""
        template = _template(span)
        if template == _AGENT:
            return AgentScope(span=span, name=first_text(span.attributes, "name"))
        if template != _TRACE:
            return None
        group = first_text(span.attributes, "group_id")
        return AgentScope(
            span=span, conversation_id=None if group is None or group.startswith(_NO_GROUP) else group
        )


def _template(span: Span) -> JSON:
    return span.attributes.get(semconv.LOGFIRE_TEMPLATE)


def _read_chat(attributes: Mapping[str, JSON]) -> dict[str, Any]:
    return {
        "messages": read_messages(attributes.get("input")),
        "reply": merge_replies(read_messages(attributes.get("output"))),
    }


def _read_response(attributes: Mapping[str, JSON]) -> dict[str, Any]:
    """The raw request and reply; older versions have only one event per message, the reply last."""
    body = parse_json(attributes.get("response"))
    fields = read_completion(body)
    raw = attributes.get("raw_input")
    if raw is not None:
        parsed = parse_json(raw)
        items = read_messages(parsed) if parsed is not None else [chat_message("user", raw)]
        return {"messages": [*read_instructions(dig(body, "instructions")), *items], **fields}
    messages = [message for event in parse_json(attributes.get("events")) or () for message in _event(event)]
    end = len(messages)
    while end and messages[end - 1]["role"] == "assistant":
        end -= 1
    return {"messages": messages[:end], "reply": merge_replies(messages[end:]), **fields}


def _event(event: Mapping[str, Any]) -> list[Message]:
    """One message; a tool message names the call that it answers ``id``."""
    message = event.get("message")
    fields = {**(message if isinstance(message, dict) else event)}
    if fields.get("role") == "tool":
        fields["tool_call_id"] = fields.pop("id", None)
    return read_messages([{"role": "assistant", **fields}])


def _flags(attributes: Mapping[str, JSON]) -> frozenset[str]:
    """Whether the scrubber touched messages."""
    scrubbed = parse_json(attributes.get(semconv.LOGFIRE_SCRUBBED)) or ()
    hidden = any(dig(item, "path", 1) in _CONTENT for item in scrubbed)
    return frozenset({"redacted_content"}) if hidden else frozenset()
