"""The OpenTelemetry GenAI conventions, old and new, on attributes, span events and log records.

The base of every dialect that follows them. Content is looked for in this order: message
attributes on the span; the ``operation.details`` event; one event per message; the prompt and
completion events of the oldest versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import AgentScope, Dialect, ModelCall, SpanTree, ToolRun
from milegpo_plugin.adapters.messages import chat_message, merge_replies, read_instructions, read_messages
from milegpo_plugin.adapters.values import (
    as_count,
    as_name,
    as_text,
    first_text,
    parse_arguments,
    parse_cut_array,
    parse_json,
    parse_repr,
)
from milegpo_plugin.types import JSON, Message, Span, SpanEvent

CALL_OPERATIONS: Final = frozenset({"chat", "text_completion", "generate_content"})
_SCOPE_OPERATIONS: Final = frozenset({"invoke_agent", "invoke_workflow"})
_CONTENT_KEYS: Final = (semconv.INPUT_MESSAGES, semconv.OUTPUT_MESSAGES)


@dataclass(slots=True)
class Content:
    """What was said in one call, and what was wrong with its record."""

    messages: list[Message] = field(default_factory=list)
    reply: Message | None = None
    finish_reason: str | None = None
    flags: set[str] = field(default_factory=set)


def operation_of(span: Span) -> str | None:
    """The GenAI operation that ``span`` names."""
    return as_name(span.attributes.get(semconv.OPERATION))


class GenAIDialect(Dialect):
    """Spans that follow the GenAI conventions; subclasses say which are theirs."""

    def is_call(self, span: Span) -> bool:
        """Whether ``span`` is a model call."""
        return operation_of(span) in CALL_OPERATIONS

    @override
    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:
        """A ``chat``, ``text_completion`` or ``generate_content`` span."""
        if not self.is_call(span):
            return None
        content = self.read_content(span)
        attributes = span.attributes
        response_id = first_text(attributes, semconv.RESPONSE_ID)
        if response_id is None and is_stream(attributes):
            content.flags.add("stream_without_ids")
        return ModelCall(
            span=span,
            messages=content.messages,
            reply=content.reply,
            response_id=response_id,
            previous_response_id=first_text(attributes, semconv.PREVIOUS_RESPONSE_ID),
            is_delta=bool(attributes.get(semconv.PREVIOUS_RESPONSE_ID)),
            conversation_id=first_text(attributes, semconv.CONVERSATION_ID, semconv.SESSION_ID),
            model=first_text(attributes, semconv.REQUEST_MODEL, semconv.RESPONSE_MODEL),
            agent=self.agent_of(span),
            finish_reason=content.finish_reason or span_finish_reason(attributes),
            prompt_tokens=as_count(attributes.get(semconv.INPUT_TOKENS)),
            response_tokens=as_count(attributes.get(semconv.OUTPUT_TOKENS)),
            flags=frozenset(content.flags),
        )

    def read_content(self, span: Span) -> Content:
        """The messages and the reply of a call span."""
        return read_content(span)

    def agent_of(self, span: Span) -> str | None:
        """The agent that the call span itself names."""
        return first_text(span.attributes, semconv.AGENT_NAME)

    @override
    def read_tool(self, span: Span) -> ToolRun | None:
        """An ``execute_tool`` span."""
        attributes = span.attributes
        if attributes.get(semconv.OPERATION) != "execute_tool":
            return None
        arguments = attributes.get(semconv.TOOL_CALL_ARGUMENTS)
        return ToolRun(
            span=span,
            name=first_text(attributes, semconv.TOOL_NAME) or span.name.removeprefix("execute_tool "),
            arguments=None if arguments is None else parse_arguments(arguments),
            call_id=first_text(attributes, semconv.TOOL_CALL_ID),
            result=as_text(attributes.get(semconv.TOOL_CALL_RESULT)),
            failed=span.status == "ERROR",
        )

    @override
    def read_agent(self, span: Span) -> AgentScope | None:
        """An ``invoke_agent`` or ``invoke_workflow`` span; ``create_agent`` runs nothing."""
        operation = operation_of(span)
        if operation not in _SCOPE_OPERATIONS:
            return None
        return AgentScope(
            span=span,
            name=first_text(span.attributes, semconv.AGENT_NAME) if operation == "invoke_agent" else None,
            conversation_id=first_text(span.attributes, semconv.CONVERSATION_ID, semconv.SESSION_ID),
        )


def read_content(span: Span) -> Content:
    """The content of a call from wherever the conventions allow it to be."""
    events = (*span.logs, *span.events)
    details = next((event for event in events if event.name == semconv.OPERATION_DETAILS_EVENT), None)
    attributes = {**details.attributes, **span.attributes} if details else span.attributes
    if any(attributes.get(key) for key in _CONTENT_KEYS):
        return content_from_attributes(attributes)
    content = content_from_events(events)
    if not content.messages and content.reply is None:
        content.flags.add("no_content")
    return content


def content_from_attributes(attributes: Mapping[str, JSON]) -> Content:
    """``gen_ai.input.messages``, ``gen_ai.output.messages`` and ``gen_ai.system_instructions``."""
    content = Content()
    content.messages = [
        *read_instructions(attributes.get(semconv.SYSTEM_INSTRUCTIONS)),
        *read_messages(_json_list(attributes.get(semconv.INPUT_MESSAGES), content.flags)),
    ]
    output = _json_list(attributes.get(semconv.OUTPUT_MESSAGES), content.flags)
    content.reply = merge_replies(read_messages(output))
    content.finish_reason = next(
        (item["finish_reason"] for item in output if isinstance(item, dict) and item.get("finish_reason")),
        None,
    )
    return content


def content_from_events(events: Sequence[SpanEvent]) -> Content:
    """One event per message (version 1.36 and before), or one for all prompts (older still)."""
    content = Content()
    for event in events:
        body = _event_body(event)
        if event.name in semconv.MESSAGE_EVENTS:
            content.messages.extend(_event_message(semconv.MESSAGE_EVENTS[event.name], body))
        elif event.name == semconv.CHOICE_EVENT and content.reply is None:
            content.reply, content.finish_reason = _choice(body)
        elif event.name == semconv.CONTENT_PROMPT_EVENT:
            content.messages.extend(read_messages(body.get("gen_ai.prompt")))
        elif event.name == semconv.CONTENT_COMPLETION_EVENT:
            content.reply = merge_replies(read_messages(body.get("gen_ai.completion")))
    return content


def span_finish_reason(attributes: Mapping[str, JSON]) -> str | None:
    """The last of ``gen_ai.response.finish_reasons``: the Responses API has one per output item."""
    reasons = parse_repr(attributes.get(semconv.FINISH_REASONS))
    return str(reasons[-1]) if isinstance(reasons, list) and reasons else None


def is_stream(attributes: Mapping[str, JSON]) -> bool:
    """Whether the call was streamed, as far as any convention tells."""
    keys = ("gen_ai.is_streaming", "llm.is_streaming", "gen_ai.request.stream", "gen_ai.request.streaming")
    return any(str(attributes.get(key)).lower() == "true" for key in keys)


def _json_list(value: JSON, flags: set[str]) -> list[JSON]:
    """A JSON array; of a text that was cut off, the items that are whole."""
    parsed = parse_json(value)
    if parsed is None and isinstance(value, str) and value:
        flags.add("truncated_json")
        return parse_cut_array(value)
    return parsed if isinstance(parsed, list) else [] if parsed is None else [parsed]


def _event_body(event: SpanEvent) -> Mapping[str, Any]:
    body = parse_json(event.body)
    return body if isinstance(body, dict) else event.attributes


def _event_message(role: str, body: Mapping[str, Any]) -> list[Message]:
    """``gen_ai.tool.message`` names the call it answers ``id``; ``content`` may be absent."""
    fields = {"role": body.get("role") or role, **body}
    if role == "tool":
        return [chat_message(role, as_text(body.get("content")), tool_call_id=body.get("id"))]
    return read_messages([fields])


def _choice(body: Mapping[str, Any]) -> tuple[Message | None, str | None]:
    """``gen_ai.choice``: the message, whose tool calls some versions put beside it."""
    message = parse_json(body.get("message"))
    message = message if isinstance(message, dict) else {"content": message}
    calls = parse_json(message.get("tool_calls") or body.get("tool_calls"))
    reply = {"role": "assistant", **message, "tool_calls": calls or ()}
    reason = body.get("finish_reason")
    return merge_replies(read_messages([reply])), str(reason) if reason else None
