"""What every dialect reads from spans, and the one interface that a dialect implements.

A dialect knows where one instrumentation keeps messages, tool calls, results and ids. It knows
nothing of rollouts: deduplication, order and threads are the business of ``trajectories``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from milegpo_plugin.types import JSON, Message, Span

SpanKey: TypeAlias = tuple[str, str]
"""Trace id and span id."""


@dataclass(slots=True, kw_only=True)
class ModelCall:
    """One model call in normal form; nobody changes one. None means that the dialect does not tell.

    ``messages`` is the request in OpenAI chat form, system prompt included. ``first_index`` is the
    place of ``messages[0]`` in the request: above 0 when the oldest messages were evicted from the
    span. ``is_delta`` says that earlier turns are kept by the server and are not in ``messages``.
    ``reply`` is the assistant message; token counts are those that the server reported.
    """

    span: Span
    messages: Sequence[Message] = ()
    reply: Message | None = None
    first_index: int = 0
    is_delta: bool = False
    response_id: str | None = None
    previous_response_id: str | None = None
    conversation_id: str | None = None
    model: str | None = None
    agent: str | None = None
    finish_reason: str | None = None
    prompt_token_ids: Sequence[int] | None = None
    response_token_ids: Sequence[int] | None = None
    logprobs: Sequence[float] | None = None
    prompt_tokens: int | None = None
    response_tokens: int | None = None
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """One execution of a tool. ``result`` is what the agent's code gave back, as text.

    ``is_part`` says that it happened within the run of another tool; no dialect sets it.
    """

    span: Span
    name: str
    arguments: dict[str, JSON] | None = None
    call_id: str | None = None
    result: str | None = None
    failed: bool = False
    is_part: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentScope:
    """A span that is one run of an agent, a workflow or a session; ``name`` is the agent's."""

    span: Span
    name: str | None = None
    conversation_id: str | None = None


class SpanTree:
    """Parents and children of a set of spans; a parent that was not recorded does not exist."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans: dict[SpanKey, Span] = {(span.trace_id, span.span_id): span for span in spans}
        self._children: defaultdict[SpanKey, list[Span]] = defaultdict(list)
        for span in spans:
            if span.parent_id:
                self._children[span.trace_id, span.parent_id].append(span)

    def parent(self, span: Span) -> Span | None:
        """The recorded parent of ``span``."""
        return self._spans.get((span.trace_id, span.parent_id)) if span.parent_id else None

    def children(self, span: Span) -> Sequence[Span]:
        """The children of ``span``, in the order in which the spans were given."""
        return self._children.get((span.trace_id, span.span_id), ())

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Parent, grandparent, … up to the root; a cycle in broken data ends the walk."""
        seen = {span.span_id}
        parent = self.parent(span)
        while parent is not None and parent.span_id not in seen:
            yield parent
            seen.add(parent.span_id)
            parent = self.parent(parent)


class Dialect(ABC):
    """How one instrumentation writes spans.

    A span belongs to the first dialect of ``DIALECTS`` that recognises it, so a general dialect
    stands after the special ones. ``recognises`` looks at attribute keys first, at the scope
    second and at the name last: names vary, and the oldest attributes may be evicted.
    """

    name: ClassVar[str]

    def read(self, span: Span, tree: SpanTree) -> tuple[ModelCall | None, ToolRun | None, AgentScope | None]:
        """All that ``span`` is; a span that agents' messages were copied to may be a call and an agent."""
        return self.read_call(span, tree), self.read_tool(span), self.read_agent(span)

    @abstractmethod
    def recognises(self, span: Span) -> bool:
        """Whether ``span`` was written by this instrumentation. Called for every span: be quick."""

    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:  # noqa: ARG002  # by default none
        """The model call that ``span`` is, or None."""
        return None

    def read_tool(self, span: Span) -> ToolRun | None:  # noqa: ARG002  # by default none
        """The execution of a tool that ``span`` is, or None."""
        return None

    def read_agent(self, span: Span) -> AgentScope | None:  # noqa: ARG002  # by default none
        """The run of an agent, workflow or session that ``span`` is, or None."""
        return None
