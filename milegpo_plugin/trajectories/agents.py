"""Which run of which agent a call belongs to: real parent links first, time only when it is clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from milegpo_plugin.adapters import AgentScope, SpanKey
from milegpo_plugin.trajectories.ancestors import nearest_ancestors
from milegpo_plugin.trajectories.calls import Call
from milegpo_plugin.trajectories.evidence import Evidence
from milegpo_plugin.types import Span

_PROCESS_IDS: Final = ("service.instance.id", "host.name", "process.pid")

Chain = tuple[AgentScope, ...]
"""Scopes from the innermost to the outermost."""


def assign_agents(calls: Sequence[Call], evidence: Evidence) -> None:
    """Set ``scopes`` and ``agent`` of every call.

    The agent is the one that the call itself names, else the nearest named scope around it. A call
    outside every scope belongs to the scope that encloses it in time, if there is just one chain.
    In another trace no call may be linked to a scope: who links its calls links all of them. The
    call's own trace must have no scopes then, and must not have lost the span that the call was below.
    """
    if evidence.scopes:
        chains = _Chains(evidence, calls)
        for call in calls:
            call.scopes = chains.around(call)
        chains.linked = {call.scopes[-1].span.trace_id for call in calls if call.scopes}
        _assign_by_time([call for call in calls if not call.scopes], evidence.scopes, chains)
    for call in calls:
        call.agent = call.read.agent or next((scope.name for scope in call.scopes if scope.name), None)


class _Chains:
    """The chain of scopes around a call or a scope."""

    def __init__(self, evidence: Evidence, calls: Sequence[Call]) -> None:
        scopes = {(scope.span.trace_id, scope.span.span_id): scope for scope in evidence.scopes}
        spans = [scope.span for scope in evidence.scopes]
        spans.extend([span for call in calls for span in call.spans])
        self._nearest: Mapping[SpanKey, SpanKey | None] = nearest_ancestors(
            evidence.tree, spans, scopes.keys()
        )
        self.linked: set[str] = set()
        self._with_scopes = {scope.span.trace_id for scope in evidence.scopes}
        self._scopes = scopes
        self._tree = evidence.tree
        self._cache: dict[SpanKey, Chain] = {}

    def around(self, call: Call) -> Chain:
        """The scopes around the outermost of the call's spans that has any."""
        for span in call.spans:
            nearest = self._nearest[span.trace_id, span.span_id]
            if nearest is not None:
                return self._chain(nearest)
        return ()

    def from_scope(self, scope: AgentScope) -> Chain:
        """``scope`` and the scopes around it."""
        return self._chain((scope.span.trace_id, scope.span.span_id))

    def may_take(self, scope: AgentScope, call: Call) -> bool:
        """Whether a call without a link may belong to ``scope``."""
        trace_id = call.spans[0].trace_id
        if scope.span.trace_id == trace_id:
            return True
        if trace_id in self._with_scopes or scope.span.trace_id in self.linked:
            return False
        top = call.spans[0]
        for ancestor in self._tree.ancestors(top):
            top = ancestor
        return top.parent_id is None

    def _chain(self, key: SpanKey) -> Chain:
        """From the scope at ``key`` outwards; a cycle in broken data ends the chain."""
        if key not in self._cache:
            path: dict[SpanKey, None] = {}
            outer: SpanKey | None = key
            while outer is not None and outer not in path:
                path[outer] = None
                outer = self._nearest.get(outer)
            self._cache[key] = tuple(self._scopes[scope] for scope in path)
        return self._cache[key]


def _assign_by_time(calls: Sequence[Call], scopes: Sequence[AgentScope], chains: _Chains) -> None:
    """Sweep calls and scopes in order of start; only scopes that are still open can enclose a call."""
    waiting = sorted(scopes, key=lambda scope: scope.span.start_ns, reverse=True)
    open_scopes: list[AgentScope] = []
    for call in sorted(calls, key=lambda call: call.start_ns):
        while waiting and waiting[-1].span.start_ns <= call.start_ns:
            open_scopes.append(waiting.pop())
        open_scopes = [scope for scope in open_scopes if scope.span.end_ns >= call.start_ns]
        enclosing = [
            scope for scope in open_scopes if _encloses(scope, call) and chains.may_take(scope, call)
        ]
        call.scopes = _only_chain(enclosing, chains)


def _encloses(scope: AgentScope, call: Call) -> bool:
    return (
        scope.span.end_ns >= call.end_ns
        and scope.span.rollout_id == call.spans[0].rollout_id
        and same_process(scope.span, call.spans[0])
    )


def _only_chain(enclosing: Sequence[AgentScope], chains: _Chains) -> Chain:
    """The chain of the innermost scope when all enclosing scopes are on it, else none."""
    longest = max((chains.from_scope(scope) for scope in enclosing), key=len, default=())
    on_chain = {id(scope) for scope in longest}
    return longest if all(id(scope) in on_chain for scope in enclosing) else ()


def same_process(left: Span, right: Span) -> bool:
    """Whether one process wrote both spans, as far as their resources tell: by its ids, else by all."""
    mine, theirs = left.resource, right.resource
    if mine is theirs:
        return True
    ids = [(mine.get(key), theirs.get(key)) for key in _PROCESS_IDS]
    if any(pair != (None, None) for pair in ids):
        return all(a == b for a, b in ids)
    return mine == theirs
