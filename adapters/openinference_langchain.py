"""OpenInference for LangChain and LangGraph: ``ChatOpenAI`` (LLM) and tools below CHAIN spans.

Deviations: the raw request and reply are LangChain's own JSON; ``arguments`` of an empty object
are left out; a tool span has its call id, its text and its status in ``output.value``; a tool
that failed and was handled has the status OK. CHAIN spans also carry ``llm.input_messages``. The
agent's name and the node of the graph are in ``metadata``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import AgentScope, ModelCall, SpanTree, ToolRun
from milegpo_plugin.adapters.messages import merge_replies, message_text, read_messages
from milegpo_plugin.adapters.openinference import OpenInferenceDialect, is_from
from milegpo_plugin.adapters.values import as_name, dig, first_text, logprob_values, parse_json
from milegpo_plugin.types import JSON, Message, Span

_METADATA_KEYS: Final = ('"lc_', '"ls_', '"langgraph_')


class OpenInferenceLangChain(OpenInferenceDialect):
    """Spans of LangChain runs."""

    name = "openinference_langchain"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope; without one by LangChain's keys in the metadata."""
        if span.scope:
            return is_from(span, "langchain")
        metadata = span.attributes.get(semconv.OI_METADATA)
        return (
            semconv.OI_SPAN_KIND in span.attributes
            and isinstance(metadata, str)
            and any(key in metadata for key in _METADATA_KEYS)
        )

    @override
    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:
        """A chat model; a streamed reply has no response id."""
        call = super().read_call(span, tree)
        parameters = parse_json(span.attributes.get(semconv.OI_INVOCATION_PARAMETERS))
        if call is None or call.response_id or not dig(parameters, "stream"):
            return call
        return replace(call, flags=call.flags | {"stream_without_ids"})

    @override
    def read_raw_request(self, request: JSON) -> list[Message]:
        """A batch of one list of messages."""
        batch = dig(request, "messages", 0)
        return read_messages(
            [_plain_message(item) for item in batch if isinstance(item, dict)] if batch else []
        )

    @override
    def read_raw_reply(self, attributes: Mapping[str, JSON]) -> dict[str, Any]:
        """The first generation of an ``LLMResult``."""
        output = parse_json(attributes.get(semconv.OI_OUTPUT_VALUE))
        generation = dig(output, "generations", 0, 0)
        message = _plain_message(dig(generation, "message") or {})
        told = message.get("response_metadata")
        logprobs = dig(generation, "generation_info", "logprobs", "content") or dig(
            told, "logprobs", "content"
        )
        fields = {
            "reply": merge_replies(read_messages([message])) if "role" in message else None,
            "response_id": as_name(dig(told, "id")) or as_name(dig(output, "llm_output", "id")),
            "model": as_name(dig(told, "model_name")),
            "finish_reason": as_name(dig(generation, "generation_info", "finish_reason")),
            "logprobs": logprob_values(logprobs),
        }
        return {name: value for name, value in fields.items() if value is not None}

    @override
    def agent_of(self, span: Span) -> str | None:
        return as_name(_metadata(span).get("lc_agent_name")) or super().agent_of(span)

    @override
    def read_tool(self, span: Span) -> ToolRun | None:
        """A tool; what it returned is a tool message in LangChain's JSON."""
        run = super().read_tool(span)
        answer = parse_json(span.attributes.get(semconv.OI_OUTPUT_VALUE))
        message = _plain_message(answer) if isinstance(answer, dict) else {}
        if run is None or "tool_call_id" not in message:
            return run
        return replace(
            run,
            call_id=as_name(message["tool_call_id"]),
            result=message_text(read_messages([message])[0]),
            failed=run.failed or message.get("status") == "error",
        )

    @override
    def read_agent(self, span: Span) -> AgentScope | None:
        """The run of a graph or a chain: a CHAIN that is no node, or that is named as its agent."""
        if span.attributes.get(semconv.OI_SPAN_KIND) != "CHAIN":
            return super().read_agent(span)
        name = self.agent_of(span)
        if "langgraph_node" in _metadata(span) and span.name != name:
            return None
        return AgentScope(
            span=span, name=name, conversation_id=first_text(span.attributes, semconv.SESSION_ID)
        )


def _metadata(span: Span) -> Mapping[str, JSON]:
    metadata = parse_json(span.attributes.get(semconv.OI_METADATA))
    return metadata if isinstance(metadata, dict) else {}


def _plain_message(item: Mapping[str, Any]) -> dict[str, Any]:
    """A serialised message as one mapping with a role; nothing when it is no message.

    Either ``{"lc", "id", "kwargs"}`` (a constructor), or ``{"type", "data"}``, or plain fields.
    """
    fields = item.get("kwargs") or item.get("data") or item
    kind = fields.get("type") or dig(item, "id", -1) or ""
    role = fields.get("role") or str(kind).removesuffix("Chunk").removesuffix("Message").lower()
    return {**fields, "role": role} if role else {}
