"""OpenInference for CrewAI: ``Crew.kickoff`` > ``{role}._execute_core`` > ``{tool}.run``.

The wrappers trace no model calls: those come from an instrumentation of the client. The event
listener of newer versions writes ``{model}.llm_call`` spans in plain OpenInference.
"""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import AgentScope
from milegpo_plugin.adapters.openinference import OpenInferenceDialect, is_from
from milegpo_plugin.adapters.values import first_text
from milegpo_plugin.types import Span

_KICKOFF: Final = ".kickoff"


class OpenInferenceCrewAI(OpenInferenceDialect):
    """Spans of crews, flows, their agents and tools."""

    name = "openinference_crewai"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope of the wrappers or of the event listener below it."""
        return is_from(span, "crewai") or span.scope.startswith(semconv.OI_SCOPE + "crewai.")

    @override
    def read_agent(self, span: Span) -> AgentScope | None:
        """An agent by its role, or the kickoff of a crew or a flow: one rollout of several agents."""
        if span.attributes.get(semconv.OI_SPAN_KIND) == "CHAIN" and span.name.endswith(_KICKOFF):
            return AgentScope(span=span, conversation_id=first_text(span.attributes, semconv.SESSION_ID))
        return super().read_agent(span)
