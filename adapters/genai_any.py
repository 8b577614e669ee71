"""Any span that follows the OpenTelemetry GenAI conventions, in any language.

The last resort of ``DIALECTS``: it knows no deviation, and also reads spans whose scope a store
does not keep.
"""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.genai import CALL_OPERATIONS, GenAIDialect, operation_of
from milegpo_plugin.types import Span

_OTHER_OPERATIONS: Final = frozenset({"invoke_agent", "invoke_workflow", "execute_tool", "create_agent"})


class GenAIAny(GenAIDialect):
    """Spans with a GenAI operation, or with messages on them."""

    name = "genai_any"

    @override
    def recognises(self, span: Span) -> bool:
        """By the operation, else by the messages: an old SDK may have evicted the operation."""
        return operation_of(span) in CALL_OPERATIONS | _OTHER_OPERATIONS or (
            semconv.OUTPUT_MESSAGES in span.attributes
        )

    @override
    def is_call(self, span: Span) -> bool:
        return super().is_call(span) or (
            semconv.OPERATION not in span.attributes and semconv.OUTPUT_MESSAGES in span.attributes
        )
