"""Pydantic AI's own spans, ``InstrumentationSettings`` version 2 and later.

Deviations: tool results are user turns; their text is under ``result``; arguments are JSON
strings; the system prompt is apart from the history. Version 2 has other keys on tool spans.
"""

from __future__ import annotations

from dataclasses import replace

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import ToolRun
from milegpo_plugin.adapters.genai import GenAIDialect
from milegpo_plugin.adapters.values import as_text, parse_arguments
from milegpo_plugin.types import Span


class PydanticAI(GenAIDialect):
    """``chat``, ``execute_tool`` and ``invoke_agent`` spans of Pydantic AI."""

    name = "pydantic_ai"

    @override
    def recognises(self, span: Span) -> bool:
        """Call spans carry the request parameters; the other spans are told by the scope."""
        return semconv.PYDANTIC_AI_CALL_KEY in span.attributes or span.scope == semconv.PYDANTIC_AI_SCOPE

    @override
    def read_tool(self, span: Span) -> ToolRun | None:
        """An ``execute_tool`` span, or version 2's ``running tool``."""
        run = super().read_tool(span)
        arguments = span.attributes.get(semconv.PYDANTIC_AI_V2_ARGUMENTS)
        if run is None or arguments is None:
            return run
        result = as_text(span.attributes.get(semconv.PYDANTIC_AI_V2_RESULT))
        return replace(run, arguments=parse_arguments(arguments), result=result)
