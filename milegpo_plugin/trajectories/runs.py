"""One execution of a tool, several spans: the framework's, and those of a client or server below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from milegpo_plugin.adapters import AgentScope, SpanKey, SpanTree, ToolRun
from milegpo_plugin.trajectories.ancestors import nearest_ancestors


def merge_nested_runs(runs: Sequence[ToolRun], scopes: Sequence[AgentScope], tree: SpanTree) -> list[ToolRun]:
    """Each execution once; the outer span counts, and a copy below it fills what it does not tell.

    A run of another tool below a run is a part of it, and is marked so. A run of an agent between
    the two makes them two executions.
    """
    if len(runs) < 2:
        return list(runs)
    found = {_key(run): run for run in runs}
    barriers = {(scope.span.trace_id, scope.span.span_id) for scope in scopes} - found.keys()
    outer_of = nearest_ancestors(tree, [run.span for run in runs], found.keys(), barriers)
    for run in reversed(runs):
        key = _key(run)
        outer = outer_of[key]
        if outer is None:
            continue
        if found[outer].name == run.name:
            found[outer] = _filled(found[outer], found.pop(key))
        else:
            found[key] = replace(found[key], is_part=True)
    return [found[key] for run in runs if (key := _key(run)) in found]


def _filled(outer: ToolRun, inner: ToolRun) -> ToolRun:
    return replace(
        outer,
        arguments=inner.arguments if outer.arguments is None else outer.arguments,
        call_id=outer.call_id or inner.call_id,
        result=inner.result if outer.result is None else outer.result,
    )


def _key(run: ToolRun) -> SpanKey:
    return run.span.trace_id, run.span.span_id
