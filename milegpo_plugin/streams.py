"""Traces too many to hold: sorted into parts on disk, and rebuilt part after part.

A part is the traces that can be of one rollout. What it takes is one pass over the input, a
temporary file of about its size, and the memory of the largest part besides what is kept of the results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from milegpo_plugin.spans import LogRecord, Spool, attach_logs
from milegpo_plugin.trajectories import Partition, Reconstruction, ReconstructOptions, build_trajectories
from milegpo_plugin.types import Action, Skipped, Span, Step, ToolCall, Trajectory


def rebuild_in_parts(
    items: Iterable[Span | LogRecord],
    options: ReconstructOptions,
    *,
    on_problem: Callable[[Skipped], None],
    each: Callable[[Trajectory], Trajectory],
) -> Reconstruction:
    """The same rollouts as ``build_trajectories`` finds in all of ``items`` at once.

    Args:
        items: spans, and the log records that belong to them, in any order.
        options: as for ``build_trajectories``.
        on_problem: told of log records without a span.
        each: given every rollout as soon as it is rebuilt; what it returns is kept.
    """
    partition = Partition()
    counts: Counter[str] = Counter()
    flags: Counter[str] = Counter()
    whole = Reconstruction([], [], counts, flags)
    with Spool() as spool:
        for trace_id in _fill(spool, partition, items):
            partition.mention(trace_id)
            for span in with_logs(spool.take([trace_id]), _ignore):
                partition.add(span)
        for part in partition.parts():
            rebuilt = rebuild_part(spool.take(part), options, on_problem=on_problem)
            whole.trajectories.extend(map(each, rebuilt.trajectories))
            whole.skipped.extend(rebuilt.skipped)
            counts.update(rebuilt.counts)
            flags.update(rebuilt.flags)
    return whole


def outline(trajectory: Trajectory) -> Trajectory:
    """What counts and flags need of a rollout: its text, messages and token ids are left out."""
    return trajectory.model_copy(
        update={"steps": [_outline(step) for step in trajectory.steps], "final_observation": None}
    )


def _outline(step: Step) -> Step:
    return Step(
        agent=step.agent,
        action=Action(tool_calls=[ToolCall(name=call.name) for call in step.action.tool_calls]),
        response_token_ids=None if step.response_token_ids is None else [],
        flags=step.flags,
    )


def rebuild_part(
    items: Iterable[Span | LogRecord],
    options: ReconstructOptions,
    *,
    on_problem: Callable[[Skipped], None],
) -> Reconstruction:
    """The rollouts of spans and log records that are held."""
    return build_trajectories(with_logs(items, on_problem), options)


def _fill(spool: Spool, partition: Partition, items: Iterable[Span | LogRecord]) -> list[str]:
    """Put everything on disk; the traces with log records, whose content may be in those."""
    logged: dict[str, None] = {}
    for item in items:
        spool.add(item)
        if isinstance(item, Span):
            partition.add(item)
        else:
            logged[item.trace_id] = None
    return list(logged)


def with_logs(items: Iterable[Span | LogRecord], on_problem: Callable[[Skipped], None]) -> list[Span]:
    """The spans, with the log records on them; ``on_problem`` is told of records without a span."""
    spans: list[Span] = []
    records: list[LogRecord] = []
    for item in items:
        if isinstance(item, Span):
            spans.append(item)
        else:
            records.append(item)
    return attach_logs(spans, records, on_problem=on_problem)


def _ignore(problem: Skipped) -> None:
    """What is wrong with the records of a trace is told when the trace is rebuilt."""
