"""``opentelemetry-instrumentation-genai-openai-agents``: the frame of an OpenAI Agents SDK run.

``invoke_workflow`` > ``invoke_agent`` > ``execute_tool``, without model calls: those come from a
client instrumentation and nest below ``invoke_agent``. Tool spans have no call id, and the SDK
redacts the reason of a failed tool.
"""

from __future__ import annotations

from typing_extensions import override

from milegpo_plugin.adapters.genai import GenAIDialect
from milegpo_plugin.types import Span


class GenAIOpenAIAgents(GenAIDialect):
    """Workflow, agent and tool spans of the OpenAI Agents SDK."""

    name = "genai_openai_agents"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope: its keys are those of the conventions."""
        return span.scope == "opentelemetry.instrumentation.genai.openai_agents"
