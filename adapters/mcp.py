"""The Model Context Protocol SDK's own spans: ``MCP send tools/call {tool}``.

Only the client's side is a run of a tool; the server's span is the same run seen by another
process. Arguments and result are there only where the GenAI conventions' opt-in keys are set.
"""

from __future__ import annotations

from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import Dialect, ToolRun
from milegpo_plugin.adapters.values import as_text, first_text, parse_arguments
from milegpo_plugin.types import Span


class MCP(Dialect):
    """Spans of MCP clients and servers."""

    name = "mcp"

    @override
    def recognises(self, span: Span) -> bool:
        """By the method, which every span of the conventions has."""
        return semconv.MCP_METHOD in span.attributes

    @override
    def read_tool(self, span: Span) -> ToolRun | None:
        """A ``tools/call`` of the client."""
        attributes = span.attributes
        if attributes[semconv.MCP_METHOD] != semconv.MCP_TOOL_CALL or span.kind == "SERVER":
            return None
        arguments = attributes.get(semconv.TOOL_CALL_ARGUMENTS)
        return ToolRun(
            span=span,
            name=first_text(attributes, semconv.TOOL_NAME) or span.name.rpartition(" ")[2],
            arguments=None if arguments is None else parse_arguments(arguments),
            call_id=first_text(attributes, semconv.TOOL_CALL_ID),
            result=as_text(attributes.get(semconv.TOOL_CALL_RESULT)),
            failed=span.status == "ERROR",
        )
