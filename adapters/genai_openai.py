"""``opentelemetry-instrumentation-genai-openai``, the successor of ``-openai-v2``.

Follows the conventions to the letter: messages and tool definitions on the span, Responses API
included. ``previous_response_id`` is not recorded, so a chained run shows only what is new.
"""

from __future__ import annotations

from typing_extensions import override

from milegpo_plugin.adapters.genai import GenAIDialect
from milegpo_plugin.types import Span


class GenAIOpenAI(GenAIDialect):
    """``chat {model}`` spans."""

    name = "genai_openai"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope: its keys are those of the conventions."""
        return span.scope == "opentelemetry.instrumentation.genai.openai"
