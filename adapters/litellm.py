"""LiteLLM's own OpenTelemetry callback, also as the model proxy of Agent Lightning.

Two spans per call with the same start and end. ``litellm_request`` has text and, apart from it,
tool calls without ids; its child ``raw_gen_ai_request`` has the wire data as Python reprs, token
ids included. Under an active parent span old versions write the attributes onto that parent,
each call over the last: then only the raw children are calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import Dialect, ModelCall, SpanTree
from milegpo_plugin.adapters.completions import read_completion
from milegpo_plugin.adapters.genai import GenAIDialect, is_stream
from milegpo_plugin.adapters.messages import chat_message, chat_tool_call, read_messages
from milegpo_plugin.adapters.values import indexed, parse_repr
from milegpo_plugin.types import JSON, Message, Span

_RAW_KEYS = (
    "messages",
    "input",
    "choices",
    "output",
    "id",
    "model",
    "usage",
    "prompt_token_ids",
    "response_token_ids",
)


class LiteLLMRequest(GenAIDialect):
    """``litellm_request`` spans."""

    name = "litellm_otel"

    @override
    def recognises(self, span: Span) -> bool:
        """LiteLLM's call id is on its own span, or on the foreign parent that it wrote to."""
        return semconv.LITELLM_CALL_ID in span.attributes or span.name == semconv.LITELLM_CALL_SPAN

    @override
    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:
        """The request span; a foreign parent only when it has no raw child of its own."""
        if span.name != semconv.LITELLM_CALL_SPAN and any(map(_is_raw, tree.children(span))):
            return None
        call = super().read_call(span, tree)
        if call is None:
            return None
        response_id = None if span.status == "ERROR" else call.response_id
        return replace(call, reply=_with_tool_calls(call.reply, span), response_id=response_id)


class LiteLLMRaw(Dialect):
    """``raw_gen_ai_request`` spans: ``llm.{provider}.{field}``."""

    name = "litellm_raw"

    @override
    def recognises(self, span: Span) -> bool:
        """By the name: the keys contain the provider's."""
        return _is_raw(span)

    @override
    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:
        """The wire request and reply."""
        body = _raw_body(span.attributes)
        parent = tree.parent(span)
        streamed = parent is not None and is_stream(parent.attributes)
        fields = read_completion(body)
        flags = (
            {"no_content"} if not body else {"stream_without_ids"} if streamed and "id" not in body else set()
        )
        return ModelCall(
            span=span,
            messages=read_messages(body.get("messages") or body.get("input")),
            flags=frozenset(flags),
            **fields,
        )


def _is_raw(span: Span) -> bool:
    return span.name == semconv.LITELLM_RAW_SPAN


def _raw_body(attributes: Mapping[str, JSON]) -> dict[str, Any]:
    """The wire fields without their ``llm.{provider}.`` prefix, parsed."""
    body: dict[str, Any] = {}
    for key, value in attributes.items():
        name = key.rpartition(".")[2]
        if key.startswith(semconv.LITELLM_RAW) and name in _RAW_KEYS:
            parsed = parse_repr(value)
            body[name] = value if parsed is None else parsed
    return body


def _with_tool_calls(reply: Message | None, span: Span) -> Message | None:
    """Tool calls are ``gen_ai.completion.M.function_call``, where M counts calls, not choices."""
    calls = list(_function_calls(indexed(span.attributes, semconv.COMPLETION).values()))
    if not calls or (reply and reply.get("tool_calls")):
        return reply
    return chat_message("assistant", reply["content"] if reply else None, tool_calls=calls)


def _function_calls(completions: Iterable[Mapping[str, JSON]]) -> Iterable[dict[str, JSON]]:
    for fields in completions:
        if fields.get("function_call.name"):
            yield chat_tool_call(
                fields.get("function_call.id"),
                fields["function_call.name"],
                fields.get("function_call.arguments"),
            )
