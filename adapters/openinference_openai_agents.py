"""OpenInference for the OpenAI Agents SDK: trace > agent > turn > ``generation`` or ``response``.

Deviations: the raw reply of a chat completion is a list of messages without ids; the indices of
the tool calls of a history count through all its messages; tool spans have no call id; a hand-off
is a TOOL span without a tool name. The messages of a ``response`` begin at 1, where index 0 is the
place of instructions that need not be there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import ToolRun
from milegpo_plugin.adapters.completions import read_completion
from milegpo_plugin.adapters.messages import merge_replies, read_messages
from milegpo_plugin.adapters.openinference import OpenInferenceDialect, is_from
from milegpo_plugin.adapters.values import parse_json
from milegpo_plugin.types import JSON, Message, Span

_BODY_KEYS: Final = frozenset({"choices", "output"})


class OpenInferenceOpenAIAgents(OpenInferenceDialect):
    """Spans of the OpenAI Agents SDK."""

    name = "openinference_openai_agents"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope; without one by the names that the SDK gives its model calls."""
        return is_from(span, "openai_agents") or (
            not span.scope and self.is_call(span) and span.name in ("generation", "response")
        )

    @override
    def read_request(self, attributes: dict[str, JSON], request: JSON) -> tuple[Sequence[Message], int]:
        """The system is written first: as long as it is there, no message was evicted."""
        messages, first_index = super().read_request(attributes, request)
        return messages, 0 if semconv.OI_LLM_SYSTEM in attributes else first_index

    @override
    def read_raw_request(self, request: JSON) -> list[Message]:
        return read_messages(request)

    @override
    def read_raw_reply(self, attributes: Mapping[str, JSON]) -> dict[str, Any]:
        """A Responses body; a list of one chat body when streamed; else a list of messages."""
        output = parse_json(attributes.get(semconv.OI_OUTPUT_VALUE))
        if not isinstance(output, list):
            return read_completion(output)
        if output and isinstance(output[0], dict) and not _BODY_KEYS.isdisjoint(output[0]):
            return read_completion(output[0])
        return {"reply": merge_replies(read_messages(output))}

    @override
    def read_tool(self, span: Span) -> ToolRun | None:
        """A function tool; a hand-off has no name, and its result is in the next request."""
        return super().read_tool(span) if semconv.OI_TOOL_NAME in span.attributes else None
