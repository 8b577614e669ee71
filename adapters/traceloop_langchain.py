"""Traceloop (OpenLLMetry) for LangChain and LangGraph.

Deviations: the system prompt is apart from the history; the arguments and results of tools are
wrapped in LangChain's own JSON, and the tool-call id is inside; the agent's name is an
association property, which is right for sub-agents too. ``invoke_agent`` comes twice.
"""

from __future__ import annotations

from dataclasses import replace

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import AgentScope, ModelCall, SpanTree, ToolRun
from milegpo_plugin.adapters.genai import GenAIDialect
from milegpo_plugin.adapters.values import as_name, as_text, dig, first_text, parse_arguments, parse_json
from milegpo_plugin.types import JSON, Span

_AGENT = semconv.TRACELOOP_ASSOCIATION + "lc_agent_name"
_CONVERSATIONS = (
    semconv.CONVERSATION_ID,
    semconv.TRACELOOP_ASSOCIATION + "thread_id",
    semconv.TRACELOOP_ASSOCIATION + "session_id",
)


class TraceloopLangChain(GenAIDialect):
    """``ChatOpenAI.chat``, ``execute_tool``, ``execute_task`` and ``*.workflow`` spans."""

    name = "traceloop_langchain"

    @override
    def recognises(self, span: Span) -> bool:
        """LangGraph's keys, the entity keys of every Traceloop span, else the scope."""
        return (
            semconv.TRACELOOP_LANGGRAPH_KEY in span.attributes
            or span.attributes.get(semconv.PROVIDER) in ("langgraph", "langchain")
            or span.scope == semconv.TRACELOOP_LANGCHAIN_SCOPE
        )

    @override
    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:
        call = super().read_call(span, tree)
        return call and replace(call, conversation_id=first_text(span.attributes, *_CONVERSATIONS))

    @override
    def agent_of(self, span: Span) -> str | None:
        return first_text(span.attributes, _AGENT, semconv.AGENT_NAME)

    @override
    def read_tool(self, span: Span) -> ToolRun | None:
        run = super().read_tool(span)
        if run is None:
            return None
        asked = parse_json(span.attributes.get(semconv.TOOL_CALL_ARGUMENTS))
        answer = dig(parse_json(span.attributes.get(semconv.TOOL_CALL_RESULT)), "output")
        call_id = as_name(dig(asked, "kwargs", "tool_call_id")) or as_name(
            dig(answer, "kwargs", "tool_call_id")
        )
        return replace(
            run,
            arguments=_arguments(asked),
            call_id=call_id or run.call_id,
            result=_result(answer),
            failed=run.failed or dig(answer, "kwargs", "status") == "error",
        )

    @override
    def read_agent(self, span: Span) -> AgentScope | None:
        scope = super().read_agent(span)
        return scope and replace(scope, conversation_id=first_text(span.attributes, *_CONVERSATIONS))


def _arguments(asked: JSON) -> dict[str, JSON] | None:
    """``inputs`` is the object; ``input_str`` is its Python repr."""
    inputs = dig(asked, "inputs")
    if isinstance(inputs, dict):
        return inputs
    text = dig(asked, "input_str")
    return None if text is None else parse_arguments(text)


def _result(answer: JSON) -> str | None:
    content = dig(answer, "kwargs", "content")
    return as_text(answer if content is None else content)
