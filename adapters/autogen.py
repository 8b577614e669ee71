"""AutoGen's own spans: ``invoke_agent`` > ``execute_tool``, without model calls.

Model calls come from an instrumentation of the client and nest below ``invoke_agent``. Tool spans
have the call id, but neither arguments nor result. A team also writes the messages of its runtime
(``autogen process {agent}_{team}.({team})-A``), and every turn of an agent is a trace of its own
below one of those: the id of the team in their names tells which turns belong together.
"""

from __future__ import annotations

import re
from typing import Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import AgentScope
from milegpo_plugin.adapters.genai import GenAIDialect
from milegpo_plugin.types import Span

_PROCESS: Final = re.compile(r"autogen process .*\((?P<team>[^()]+)\)-A$")


class AutoGen(GenAIDialect):
    """Agent and tool spans of AutoGen, and the messages of its runtime."""

    name = "autogen"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope; without one by the system."""
        return span.scope.startswith(semconv.AUTOGEN_SCOPE) or (
            span.attributes.get(semconv.SYSTEM) == semconv.AUTOGEN_SCOPE
        )

    @override
    def read_agent(self, span: Span) -> AgentScope | None:
        """The run of an agent, or the runtime of a team around it."""
        runtime = _PROCESS.match(span.name)
        if runtime is None:
            return super().read_agent(span)
        return AgentScope(span=span, conversation_id=runtime["team"])
