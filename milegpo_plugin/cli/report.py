"""``milegpo report``: one page that shows which steps won and lost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milegpo_plugin.cli import options
from milegpo_plugin.cli.options import (
    ConfigFile,
    EstimatorName,
    Logs,
    Plain,
    PresetName,
    Rewards,
    StageName,
    TaskAttribute,
    Threshold,
)


def report(
    inputs: Annotated[
        list[Path], typer.Argument(metavar="INPUT…", help="Traces, trajectories.jsonl, or a run's folder.")
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Default: report.FORMAT.")] = None,
    file_format: Annotated[str, typer.Option("--format", help="html, json, csv, parquet or png.")] = "html",
    compare: Annotated[
        str | None, typer.Option(help="A second estimator on the same rollouts, to see where they differ.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="The group that --format png draws.")] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Refresh the page of a run while it trains.")
    ] = False,
    estimator: EstimatorName = None,
    stage: StageName = None,
    preset: PresetName = None,
    config: ConfigFile = None,
    success_threshold: Threshold = None,
    logs: Logs = None,
    task_attribute: TaskAttribute = None,
    rewards: Rewards = None,
    plain: Plain = False,
) -> None:
    """Write one self-contained page that shows which steps won and lost."""
    from milegpo_plugin.report.command import report as write

    console = options.make_console(plain)
    settings = options.credit_config(estimator, stage, preset, config, success_threshold)
    other = (
        None if compare is None else options.credit_config(compare, None, preset, config, success_threshold)
    )
    write(
        inputs,
        output,
        config=settings,
        tell=lambda line: console.print(line, markup=False, soft_wrap=True),
        file_format=file_format,
        compare=other,
        options=options.reconstruct_options(task_attribute, rewards),
        logs=logs or (),
        title=title,
        task=task,
        watch=watch,
    )
