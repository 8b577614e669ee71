"""``opentelemetry-instrumentation-openai-v2``: content as log events, or new-style on the span.

By default one log record per message; the history then drops the text of an assistant turn that
calls tools. With ``OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental`` messages are on the
span, on one log record per call, or on both. There are never tool definitions.
"""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from milegpo_plugin.adapters.genai import GenAIDialect
from milegpo_plugin.types import Span

_SCOPES: Final = frozenset({"opentelemetry.instrumentation.openai_v2", "opentelemetry.util.genai.handler"})


class OpenAIV2(GenAIDialect):
    """``chat {model}`` spans with their log records."""

    name = "openai_v2"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope: its keys are those of the conventions."""
        return span.scope in _SCOPES
