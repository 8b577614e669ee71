"""``milegpo credit`` and ``milegpo diagnose``: rollouts in, step advantages and figures out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milegpo_plugin.cli import options
from milegpo_plugin.cli.options import (
    ConfigFile,
    EstimatorName,
    Inputs,
    Logs,
    Plain,
    PresetName,
    Rewards,
    StageName,
    TaskAttribute,
    Threshold,
)


def credit(
    inputs: Inputs,
    estimator: EstimatorName = None,
    stage: StageName = None,
    preset: PresetName = None,
    config: ConfigFile = None,
    success_threshold: Threshold = None,
    logs: Logs = None,
    task_attribute: TaskAttribute = None,
    rewards: Rewards = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write credit.jsonl here; - is stdout.")
    ] = None,
    nodes: Annotated[Path | None, typer.Option("--nodes", help="Write nodes.jsonl here.")] = None,
    plain: Plain = False,
) -> None:
    """Assign an advantage to every step of every rollout."""
    from milegpo_plugin.credit import assign_credit
    from milegpo_plugin.files import write_records
    from milegpo_plugin.report import advice, tables

    console = options.make_console(plain)
    settings = options.credit_config(estimator, stage, preset, config, success_threshold)
    found = options.read_files(inputs, logs, task_attribute, rewards)
    result = assign_credit(found.trajectories, settings)
    metrics, records = result.metrics(), list(result.node_records())
    console.print(tables.metric_table(metrics))
    for kind in ("milestone", "trap"):
        options.print_table(console, tables.node_table(records, kind))
    options.print_problems(console, found, result.skipped)
    for warning in advice.credit_advice(metrics):
        console.print(f"warning: {warning}", style="yellow", markup=False)
    for path, lines in ((output, result.step_records()), (nodes, records)):
        if path is not None:
            console.print(f"wrote {write_records(path, lines)} lines to {path}", markup=False)


def diagnose(
    inputs: Inputs,
    preset: PresetName = None,
    config: ConfigFile = None,
    success_threshold: Threshold = None,
    logs: Logs = None,
    task_attribute: TaskAttribute = None,
    rewards: Rewards = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the figures as JSON here; - is stdout.")
    ] = None,
    plain: Plain = False,
) -> None:
    """Measure how much credit a batch can carry, and where it comes from."""
    from milegpo_plugin.credit.diagnostics import diagnose as measure
    from milegpo_plugin.files import write_records
    from milegpo_plugin.report import tables

    console = options.make_console(plain)
    settings = options.credit_config(preset=preset, file=config, threshold=success_threshold)
    found = options.read_files(inputs, logs, task_attribute, rewards)
    figures = measure(found.trajectories, settings)
    console.print(tables.diagnostics_table(figures))
    options.print_problems(console, found)
    if output is not None:
        write_records(output, [figures.to_dict()])
        console.print(f"wrote {output}", markup=False)
