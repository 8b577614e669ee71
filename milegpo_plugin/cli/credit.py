"""``milegpo credit`` and ``milegpo diagnose``: rollouts in, step advantages and figures out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from milegpo_plugin.errors import ConfigError

if TYPE_CHECKING:
    from milegpo_plugin.config import CreditConfig
    from milegpo_plugin.files import Input
    from milegpo_plugin.trajectories import ReconstructOptions


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
        Path | None,
        typer.Option("-o", "--output", help="Write credit.jsonl here; - is stdout; with ray, a new folder."),
    ] = None,
    nodes: Annotated[Path | None, typer.Option("--nodes", help="Write nodes.jsonl here.")] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="process, or ray: many files in parallel; parts are written.")
    ] = "process",
    whole_traces: Annotated[
        bool,
        typer.Option(
            "--whole-traces", help="ray: no rollout has spans in two files; read traces in parallel."
        ),
    ] = False,
    plain: Plain = False,
) -> None:
    """Assign an advantage to every step of every rollout."""
    settings = options.credit_config(estimator, stage, preset, config, success_threshold)
    if engine == "ray":
        rebuild = options.reconstruct_options(task_attribute, rewards)
        credit_with_ray(inputs, settings, rebuild, logs or [], output, nodes, whole_traces, plain)
    elif engine == "process":
        found = options.read_files(inputs, logs, task_attribute, rewards)
        credit_here(found, settings, output, nodes, plain)
    else:
        raise ConfigError(f"--engine: must be process or ray, got {engine!r}")


def credit_here(
    found: Input, settings: CreditConfig, output: Path | None, nodes: Path | None, plain: bool
) -> None:
    """Credit what was read in this process."""
    from milegpo_plugin.credit import assign_credit
    from milegpo_plugin.files import write_records
    from milegpo_plugin.report import advice, tables

    console = options.make_console(plain)
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


def credit_with_ray(
    inputs: list[Path],
    settings: CreditConfig,
    rebuild: ReconstructOptions,
    logs: list[Path],
    output: Path | None,
    nodes: Path | None,
    whole_traces: bool,
    plain: bool,
) -> None:
    """Credit many files by many processes."""
    from milegpo_plugin.agl.offline import credit_files
    from milegpo_plugin.files import STDOUT
    from milegpo_plugin.report import advice, tables

    if output is None or output == STDOUT or nodes is not None:
        raise ConfigError(
            "--engine ray: needs -o FOLDER, which gets the parts of credit and of nodes; drop --nodes"
        )
    result = credit_files(
        inputs, output, settings, logs=logs, options=rebuild, whole_traces=whole_traces, nodes=True
    )
    console = options.make_console(plain)
    console.print(tables.metric_table(result.metrics))
    options.print_table(console, tables.flag_count_table(result.flags))
    options.print_table(console, tables.skip_table(result.skipped))
    for note in result.notes:
        console.print(f"note: {note}", markup=False)
    for warning in advice.credit_advice(result.metrics):
        console.print(f"warning: {warning}", style="yellow", markup=False)
    console.print(f"wrote {result.steps} lines in {result.parts} parts to {output}", markup=False)


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
