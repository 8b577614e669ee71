"""AutoGen's own spans: ``invoke_agent`` > ``execute_tool``, without model calls.

Model calls come from an instrumentation of the client and nest below ``invoke_agent``. Tool spans
have the call id, but neither arguments nor result. A team also writes the messages of its runtime
(``autogen process …``), mostly as traces of their own: they say nothing about a rollout.
"""

from __future__ import annotations

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.genai import GenAIDialect
from milegpo_plugin.types import Span


class AutoGen(GenAIDialect):
    """Agent and tool spans of AutoGen, and the messages of its runtime."""

    name = "autogen"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope; without one by the system."""
        return span.scope.startswith(semconv.AUTOGEN_SCOPE) or (
            span.attributes.get(semconv.SYSTEM) == semconv.AUTOGEN_SCOPE
        )
