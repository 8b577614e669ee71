"""``opentelemetry-instrumentation-genai-langchain``: a flat, clean tree per agent run.

``invoke_agent`` > ``chat`` and ``execute_tool``. The agent's name is on the agent and tool spans,
the conversation id on every span. A tool error that LangGraph handles leaves no trace but its text.
"""

from __future__ import annotations

from typing_extensions import override

from milegpo_plugin.adapters.genai import GenAIDialect
from milegpo_plugin.types import Span


class GenAILangChain(GenAIDialect):
    """``chat``, ``execute_tool`` and ``invoke_agent`` spans of LangChain and LangGraph."""

    name = "genai_langchain"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope: its keys are those of the conventions."""
        return span.scope == "opentelemetry.instrumentation.genai.langchain"
