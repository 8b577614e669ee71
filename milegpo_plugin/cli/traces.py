"""``milegpo trajectories``: spans in, rollouts out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milegpo_plugin.cli import options
from milegpo_plugin.cli.options import Logs, Plain, Rewards, TaskAttribute, Traces


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
    from milegpo_plugin.files import trajectory_records, write_records
    from milegpo_plugin.report import tables

    console = options.make_console(plain)
    found = options.read_files(traces, logs, task_attribute, rewards)
    console.print(tables.trajectory_table(found.trajectories))
    if found.counts:
        console.print(f"\nread {tables.counts_line(found.counts)}")
    options.print_problems(console, found)
    if output is not None:
        count = write_records(output, trajectory_records(found.trajectories))
        console.print(f"wrote {count} rollouts to {output}", markup=False)
