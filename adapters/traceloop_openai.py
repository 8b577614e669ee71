"""Traceloop (OpenLLMetry) for the openai client, with messages as JSON strings (0.4x and later).

Deviations: the finish reason is ``tool_call``; in the Responses API a call has the item id
``fc_…`` and its result the id ``call_…``, so the two never join and results are matched by order.
Every call is its own trace unless the application opens a span.
"""

from __future__ import annotations

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.genai import GenAIDialect
from milegpo_plugin.types import Span


class TraceloopOpenAI(GenAIDialect):
    """``openai.chat`` and ``openai.response`` spans."""

    name = "traceloop_openai"

    @override
    def recognises(self, span: Span) -> bool:
        """New versions name the operation; the old ones do not."""
        return semconv.OPERATION in span.attributes and (
            semconv.TRACELOOP_OPENAI_KEY in span.attributes
            or span.scope.startswith(semconv.TRACELOOP_OPENAI_SCOPE)
        )
