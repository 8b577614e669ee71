"""Agent Lightning's own spans: annotations, messages, objects and exceptions.

They are no model calls. Their rewards are read by ``rewards``, from any span.
"""

from __future__ import annotations

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import Dialect
from milegpo_plugin.types import Span


class AgentLightning(Dialect):
    """``agentlightning.*`` spans."""

    name = "agentlightning"

    @override
    def recognises(self, span: Span) -> bool:
        """By the name: an annotation may carry any keys."""
        return span.name.startswith(semconv.AGL_SPANS)
