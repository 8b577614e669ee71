"""AgentOps, also as Agent Lightning 0.3's tracer, which adds token ids and log-probabilities.

The assistant's tool calls are not on the call span: they are child spans ``tool_call.{name}``,
written while the call is still open. Those are no executions, and carry no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import AgentScope, Dialect, ModelCall, SpanTree, ToolRun
from milegpo_plugin.adapters.flat import PLAIN_KEYS, flat_messages, flat_tool_calls
from milegpo_plugin.adapters.messages import chat_message, chat_tool_call
from milegpo_plugin.adapters.values import (
    as_count,
    as_integers,
    as_name,
    as_text,
    first_text,
    logprob_values,
    parse_json,
)
from milegpo_plugin.types import JSON, Message, Span

_COMPLETION: Final = semconv.COMPLETION + "0."
_CONTENT: Final = _COMPLETION + "content"
_FINISH_REASON: Final = _COMPLETION + "finish_reason"
_TOOL_CALLS: Final = _COMPLETION + "tool_calls."
_REPLY_KEYS: Final = (_CONTENT, _FINISH_REASON, _COMPLETION + "role")
_SCOPE_KINDS: Final = frozenset({"session", "agent", "workflow", "chain", "team", "crew"})


class AgentOps(Dialect):
    """Spans of the AgentOps SDK."""

    name = "agentops"

    @override
    def recognises(self, span: Span) -> bool:
        """Its call spans have no key of their own once the oldest are evicted: the name tells."""
        return (
            span.name == semconv.AGENTOPS_CALL_SPAN
            or semconv.AGENTOPS_SPAN_KIND in span.attributes
            or (
                semconv.AGENTOPS_TOOL_CALL_ID in span.attributes
                and span.name.startswith(semconv.AGENTOPS_TOOL_CALL_SPAN)
            )
        )

    @override
    def read(self, span: Span, tree: SpanTree) -> tuple[ModelCall | None, ToolRun | None, AgentScope | None]:
        """Only a span with a kind is a tool or an agent."""
        if semconv.AGENTOPS_SPAN_KIND in span.attributes:
            return super().read(span, tree)
        return self.read_call(span, tree), None, None

    @override
    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:
        """An ``openai.chat.completion`` span with its ``tool_call.*`` children."""
        if span.name != semconv.AGENTOPS_CALL_SPAN:
            return None
        attributes = span.attributes
        messages = flat_messages(attributes, semconv.PROMPT)
        return ModelCall(
            span=span,
            messages=messages,
            first_index=messages.first_index,
            reply=_reply(attributes, tree.children(span)),
            response_id=first_text(attributes, semconv.RESPONSE_ID),
            model=first_text(attributes, semconv.REQUEST_MODEL, semconv.RESPONSE_MODEL),
            finish_reason=first_text(attributes, _FINISH_REASON),
            prompt_token_ids=as_integers(attributes.get(semconv.AGL_PROMPT_TOKEN_IDS)),
            response_token_ids=as_integers(attributes.get(semconv.AGL_RESPONSE_TOKEN_IDS)),
            logprobs=logprob_values(attributes.get(semconv.AGL_LOGPROBS)),
            prompt_tokens=as_count(attributes.get(semconv.PROMPT_TOKENS)),
            response_tokens=as_count(attributes.get(semconv.COMPLETION_TOKENS)),
        )

    @override
    def read_tool(self, span: Span) -> ToolRun | None:
        """A function under the ``tool`` decorator; a ``tool_call.*`` span is none."""
        attributes = span.attributes
        if attributes.get(semconv.AGENTOPS_SPAN_KIND) != "tool":
            return None
        arguments = parse_json(attributes.get(semconv.AGENTOPS_TOOL_INPUT))
        return ToolRun(
            span=span,
            name=span.name.removesuffix(".tool"),
            arguments=arguments.get("kwargs") if isinstance(arguments, dict) else None,
            result=_tool_output(attributes.get(semconv.AGENTOPS_TOOL_OUTPUT)),
            failed=span.status == "ERROR",
        )

    @override
    def read_agent(self, span: Span) -> AgentScope | None:
        """A session, agent, workflow or crew of ``agentops.start_trace`` or a decorator."""
        kind = span.attributes.get(semconv.AGENTOPS_SPAN_KIND)
        if as_name(kind) not in _SCOPE_KINDS:
            return None
        name = span.name.removesuffix(".agent") if kind == "agent" else None
        return AgentScope(span=span, name=name)


def _reply(attributes: Mapping[str, JSON], children: Iterable[Span]) -> Message | None:
    """The completion with the tool calls of the child spans, in the order of their start."""
    calls = [
        chat_tool_call(
            child.attributes[semconv.AGENTOPS_TOOL_CALL_ID],
            child.attributes.get(semconv.AGENTOPS_TOOL_NAME),
            child.attributes.get(semconv.AGENTOPS_TOOL_PARAMETERS),
        )
        for child in children
        if semconv.AGENTOPS_TOOL_CALL_ID in child.attributes
    ] or flat_tool_calls(attributes, _TOOL_CALLS, PLAIN_KEYS)
    if not calls and attributes.keys().isdisjoint(_REPLY_KEYS):
        return None
    return chat_message("assistant", attributes.get(_CONTENT), tool_calls=calls)


def _tool_output(value: JSON) -> str | None:
    """The decorator writes the returned value as JSON."""
    parsed = parse_json(value)
    return as_text(value if parsed is None else parsed)
