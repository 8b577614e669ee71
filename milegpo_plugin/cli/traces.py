"""``milegpo trajectories``: spans in, rollouts out."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from milegpo_plugin.cli import options
from milegpo_plugin.cli.options import Logs, Plain, Rewards, TaskAttribute, Traces

if TYPE_CHECKING:
    from milegpo_plugin.types import Trajectory


def trajectories(
    traces: Traces,
    logs: Logs = None,
    task_attribute: TaskAttribute = None,
    rewards: Rewards = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write trajectories.jsonl here; - is stdout.")
    ] = None,
    plain: Plain = False,
) -> None:
    """Rebuild rollouts from spans, and say what could not be rebuilt and why."""
    from milegpo_plugin.files import TrajectoryWriter, read_input
    from milegpo_plugin.report import tables
    from milegpo_plugin.streams import outline

    console = options.make_console(plain)
    with ExitStack() as stack:
        writer = stack.enter_context(TrajectoryWriter(output)) if output is not None else None

        def write(trajectory: Trajectory) -> Trajectory:
            if writer is not None:
                writer.write(trajectory)
            return outline(trajectory)

        given = options.reconstruct_options(task_attribute, rewards)
        found = read_input(traces, logs=logs or (), options=given, each=write)
    console.print(tables.trajectory_table(found.trajectories))
    if found.counts:
        console.print(f"\nread {tables.counts_line(found.counts)}")
    options.print_problems(console, found)
    if writer is not None:
        console.print(f"wrote {writer.count} rollouts to {output}", markup=False)
