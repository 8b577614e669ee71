"""OpenInference for smolagents: ``{agent}.run`` > ``Step N`` > ``{Model}.generate`` + tools.

Deviations: earlier tool calls are texts ("Calling tools:" and a Python repr) of the role
``tool-call``; the results of all calls of a step are one ``tool-response``; a step that failed
leaves no tool call in the history, only its error. The raw reply has the client's reply as a
Python repr, token ids included. A code agent calls no tools: its action is the code in the text.
Tool spans have no call id, and those of parallel calls may start in another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import AgentScope
from milegpo_plugin.adapters.completions import read_completion
from milegpo_plugin.adapters.flat import FlatMessages
from milegpo_plugin.adapters.messages import (
    chat_message,
    chat_tool_call,
    merge_replies,
    message_text,
    read_messages,
)
from milegpo_plugin.adapters.openinference import OpenInferenceDialect, is_from, read_flat_messages
from milegpo_plugin.adapters.reprs import parse_object_repr
from milegpo_plugin.adapters.values import dig, parse_json, parse_repr
from milegpo_plugin.types import JSON, Message, Span

_CALLING: Final = "Calling tools:\n"
_OBSERVATION: Final = "Observation:\n"
_RUN: Final = ".run"
_TOOL_OPTION: Final = '"sanitize_inputs_outputs"'
_CLASSES: Final = frozenset({"CodeAgent", "ToolCallingAgent", "MultiStepAgent"})


class OpenInferenceSmolagents(OpenInferenceDialect):
    """Spans of smolagents runs."""

    name = "openinference_smolagents"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope; without one by the run's own keys, or by the names of model calls and tool options."""
        return is_from(span, "smolagents") or (
            not span.scope
            and (
                semconv.SMOLAGENTS_MAX_STEPS in span.attributes
                or (self.is_call(span) and span.name.endswith((".generate", ".generate_stream")))
                or _TOOL_OPTION in str(span.attributes.get(semconv.OI_INPUT_VALUE, ""))
            )
        )

    @override
    def read_request(self, attributes: dict[str, JSON], request: JSON) -> tuple[Sequence[Message], int]:
        """The flattened messages: the raw request is Python reprs of them."""
        flat = read_flat_messages(attributes, semconv.OI_INPUT_MESSAGES)
        first = flat.first_index
        return FlatMessages(first, first + len(flat) - 1, lambda n: _chat_form(flat[n - first])), first

    @override
    def read_raw_reply(self, attributes: Mapping[str, JSON]) -> dict[str, Any]:
        """The reply, and what the client's reply in ``raw`` has besides."""
        output = parse_json(attributes.get(semconv.OI_OUTPUT_VALUE))
        body = parse_object_repr(dig(output, "raw"))
        fields = read_completion(body) if dig(body, "choices") else {}
        reply = merge_replies(read_messages([output])) if dig(output, "role") else None
        return {**fields, "reply": reply or fields.get("reply")}

    @override
    def read_reply(self, attributes: dict[str, JSON], raw: Message | None) -> Message | None:
        """The raw reply first: flattened, the reasoning is one more text."""
        return raw or super().read_reply(attributes, raw)

    @override
    def read_arguments(self, attributes: Mapping[str, JSON]) -> dict[str, JSON] | None:
        """The keyword arguments of the tool's ``__call__``."""
        keywords = dig(parse_json(attributes.get(semconv.OI_INPUT_VALUE)), "kwargs")
        return keywords if isinstance(keywords, dict) else None

    @override
    def read_agent(self, span: Span) -> AgentScope | None:
        """A run; an agent without a name runs under the name of its class."""
        scope = super().read_agent(span)
        name = span.name.removesuffix(_RUN)
        return scope and replace(scope, name=scope.name or (None if name in _CLASSES else name))


def _chat_form(message: Message) -> Message:
    """Tool calls and results that stand in the history as texts."""
    text = message_text(message) or ""
    if message["role"] == "assistant" and text.startswith(_CALLING):
        calls = parse_repr(text.removeprefix(_CALLING))
        return (
            chat_message("assistant", tool_calls=_tool_calls(calls)) if isinstance(calls, list) else message
        )
    if message["role"] == "tool":
        return chat_message("tool", text.removeprefix(_OBSERVATION))
    return message


def _tool_calls(calls: Sequence[JSON]) -> list[dict[str, JSON]]:
    return [
        chat_tool_call(dig(call, "id"), dig(call, "function", "name"), dig(call, "function", "arguments"))
        for call in calls
    ]
