"""Any span that follows OpenInference, whatever library it instruments, in any language.

It knows no deviation of a library, and also reads spans whose scope an export did not keep.
"""

from __future__ import annotations

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.openinference import OpenInferenceDialect
from milegpo_plugin.types import Span


class OpenInferenceAny(OpenInferenceDialect):
    """Spans with a span kind of OpenInference."""

    name = "openinference_any"

    @override
    def recognises(self, span: Span) -> bool:
        """By the kind, which every span of the conventions has."""
        return semconv.OI_SPAN_KIND in span.attributes
