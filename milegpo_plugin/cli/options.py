"""Options that several commands share, and what they mean."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from milegpo_plugin.config import CreditConfig
    from milegpo_plugin.files import Input
    from milegpo_plugin.trajectories import ReconstructOptions
    from milegpo_plugin.types import Skipped

Inputs = Annotated[list[Path], typer.Argument(metavar="INPUT…", help="Traces or trajectories.jsonl files.")]
Traces = Annotated[
    list[Path], typer.Argument(metavar="TRACE…", help="OTLP JSON lines, protobuf, or store spans.")
]
Logs = Annotated[list[Path] | None, typer.Option("--logs", help="Log records of event-based dialects.")]
TaskAttribute = Annotated[str | None, typer.Option(help="Span attribute that holds the task id.")]
Rewards = Annotated[Path | None, typer.Option(help='Lines of {"rollout_id", "reward"}.')]
EstimatorName = Annotated[
    str | None, typer.Option("--estimator", help="milegpo, graphgpo, plangpo, gigpo, hgpo, grpo or rloo.")
]
StageName = Annotated[str | None, typer.Option("--stage", help="pcc (all), rcs, md or graph; for ablation.")]
PresetName = Annotated[
    str | None, typer.Option("--preset", help="The paper's settings (alfworld, webshop), or ours (robust).")
]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="YAML file of credit settings.")]
Threshold = Annotated[float | None, typer.Option("--success-threshold", help="Success is reward > X.")]
Plain = Annotated[bool, typer.Option("--plain", help="No colours and no markup.")]


def make_console(plain: bool) -> Console:
    """Tables go to standard error when JSON goes to standard output."""
    from rich.console import Console

    to_stdout = "-" in sys.argv
    width = None if sys.stdout.isatty() else 400
    return Console(stderr=to_stdout, no_color=plain or None, highlight=False, width=width, soft_wrap=plain)


def read_files(
    paths: list[Path], logs: list[Path] | None, task_attribute: str | None, rewards: Path | None
) -> Input:
    """Trajectories of the named files."""
    from milegpo_plugin.files import read_input

    return read_input(paths, logs=logs or (), options=reconstruct_options(task_attribute, rewards))


def reconstruct_options(task_attribute: str | None, rewards: Path | None) -> ReconstructOptions:
    """How spans become trajectories."""
    from milegpo_plugin.files import read_rewards
    from milegpo_plugin.trajectories import ReconstructOptions

    return ReconstructOptions(
        task_attribute=task_attribute, rewards=read_rewards(rewards) if rewards is not None else {}
    )


def credit_config(
    estimator: str | None = None,
    stage: str | None = None,
    preset: str | None = None,
    file: Path | None = None,
    threshold: float | None = None,
) -> CreditConfig:
    """Preset, then file, then options: the later wins."""
    from milegpo_plugin.config import CreditConfig, read_yaml

    values: dict[str, Any] = read_yaml(file) if file is not None else {}
    from_file = values.pop("preset", None)
    options = {"estimator": estimator, "stage": stage, "success_threshold": threshold}
    values |= {name: value for name, value in options.items() if value is not None}
    chosen = preset or from_file
    return CreditConfig.preset(chosen, **values) if chosen else CreditConfig.load(values)


def print_problems(console: Console, found: Input, skipped: Iterable[Skipped] = ()) -> None:
    """Flags, reasons for what was left out, and notes."""
    from milegpo_plugin.report import tables

    print_table(console, tables.flag_table(found.trajectories))
    print_table(console, tables.skip_table([*found.skipped, *skipped]))
    for note in found.notes:
        console.print(f"note: {note}", markup=False)


def print_table(console: Console, table: Table | None) -> None:
    """A table after an empty line, or nothing."""
    if table is not None:
        console.print()
        console.print(table)
