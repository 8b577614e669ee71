"""The command line: reads options, calls the rooms, prints what they found.

Bad input prints one line to standard error and exits with code 2.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from milegpo_plugin.errors import MilegpoError

if TYPE_CHECKING:
    from rich.console import Console

    from milegpo_plugin.config import CreditConfig
    from milegpo_plugin.files import Input
    from milegpo_plugin.trajectories import ReconstructOptions

app = typer.Typer(
    name="milegpo",
    help="Step-level credit for unmodified tool-using agents, from their OpenTelemetry spans.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Inputs = Annotated[list[Path], typer.Argument(metavar="INPUT…", help="Traces or trajectories.jsonl files.")]
Traces = Annotated[
    list[Path], typer.Argument(metavar="TRACE…", help="OTLP JSON lines, protobuf, or store spans.")
]
Logs = Annotated[list[Path] | None, typer.Option("--logs", help="Log records of event-based dialects.")]
TaskAttribute = Annotated[str | None, typer.Option(help="Span attribute that holds the task id.")]
Rewards = Annotated[Path | None, typer.Option(help='Lines of {"rollout_id", "reward"}.')]
EstimatorName = Annotated[
    str | None, typer.Option("--estimator", help="milegpo, graphgpo, gigpo, hgpo, grpo or rloo.")
]
StageName = Annotated[
    str | None, typer.Option("--stage", help="pcc (all), rcs, md or graph; for ablation.")
]
PresetName = Annotated[
    str | None, typer.Option("--preset", help="The paper's settings: alfworld or webshop.")
]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="YAML file of credit settings.")]
Threshold = Annotated[float | None, typer.Option("--success-threshold", help="Success is reward > X.")]
Plain = Annotated[bool, typer.Option("--plain", help="No colours and no markup.")]


@app.command(
    epilog="Example: milegpo trajectories traces.otlp.jsonl --rewards rewards.jsonl -o trajectories.jsonl"
)
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

    console = _console(plain)
    found = _read(traces, logs, task_attribute, rewards)
    console.print(tables.trajectory_table(found.trajectories))
    if found.counts:
        console.print(f"\nread {tables.counts_line(found.counts)}")
    _print_problems(console, found)
    if output is not None:
        count = write_records(output, trajectory_records(found.trajectories))
        console.print(f"wrote {count} rollouts to {output}", highlight=False)


@app.command(
    epilog="Example: milegpo credit trajectories.jsonl --preset webshop -o credit.jsonl --nodes nodes.jsonl"
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
    nodes: Annotated[
        Path | None, typer.Option("--nodes", help="Write nodes.jsonl here; - is stdout.")
    ] = None,
    plain: Plain = False,
) -> None:
    """Assign an advantage to every step of every rollout."""
    from milegpo_plugin.credit import assign_credit
    from milegpo_plugin.files import write_records
    from milegpo_plugin.report import advice, tables

    console = _console(plain)
    settings = _credit_config(estimator, stage, preset, config, success_threshold)
    found = _read(inputs, logs, task_attribute, rewards)
    result = assign_credit(found.trajectories, settings)
    records = list(result.node_records())
    metrics = result.metrics()
    console.print(tables.metric_table(metrics))
    for kind in ("milestone", "trap"):
        _print_if(console, tables.node_table(records, kind))
    _print_problems(console, found, result.skipped)
    for warning in advice.credit_advice(metrics):
        console.print(f"warning: {warning}", style="yellow", markup=False)
    for path, lines in ((output, result.step_records()), (nodes, records)):
        if path is not None:
            console.print(f"wrote {write_records(path, lines)} lines to {path}", highlight=False)


@app.command(epilog="Example: milegpo report trajectories.jsonl -o report.html")
def report(
    inputs: Inputs,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the page goes.")] = Path(
        "report.html"
    ),
    estimator: EstimatorName = None,
    stage: StageName = None,
    preset: PresetName = None,
    config: ConfigFile = None,
    success_threshold: Threshold = None,
) -> None:
    """Write one self-contained page that shows which steps won and lost."""
    raise NotImplementedError


@app.command(
    epilog="Example: milegpo train --agent agents/coin_player.py:play --tasks tasks.jsonl --reward reward.py:score"
)
def train(
    agent: Annotated[str, typer.Option(help="FILE.py:FUNCTION, or FILE.py to run it as a script.")],
    tasks: Annotated[Path, typer.Option(help="Training tasks, one JSON object a line.")],
    reward: Annotated[
        str | None, typer.Option(help="FILE.py:FUNCTION(task, result) -> number or None.")
    ] = None,
    validation: Annotated[Path | None, typer.Option("--validation", help="Held-out tasks.")] = None,
    backend: Annotated[str, typer.Option(help="local (torch, this machine) or verl (GPUs).")] = "local",
    config: Annotated[Path | None, typer.Option(help="YAML file of training settings.")] = None,
    texts: Annotated[
        Path | None, typer.Option(help="Text whose words the tiny model's tokenizer knows.")
    ] = None,
    run_dir: Annotated[Path, typer.Option(help="Folder of this run.")] = Path("runs/train"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    plain: Plain = False,
) -> None:
    """Train your own agent, unchanged, on your own tasks."""
    from milegpo_plugin.training import train_agent

    train_agent(
        agent=agent,
        tasks=tasks,
        reward=reward,
        validation=validation,
        backend=backend,
        config=config,
        texts=texts,
        run_dir=run_dir,
        resume=resume,
        console=_console(plain),
    )


@app.command(epilog="Example: milegpo quickstart --seed 1 --run-dir runs/seed1")
def quickstart(
    run_dir: Annotated[Path, typer.Option(help="Folder of this run.")] = Path("runs/quickstart"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights, sampling and task order.")] = 0,
    iterations: Annotated[int | None, typer.Option(min=1, help="Fewer are faster and learn less.")] = None,
    estimator: EstimatorName = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the report when there is a display.")
    ] = True,
    plain: Plain = False,
) -> None:
    """Train an unmodified agent to find a coin in a house, on this machine, in minutes."""
    from milegpo_plugin.training import train_quickstart

    train_quickstart(
        run_dir=run_dir,
        seed=seed,
        iterations=iterations,
        estimator=estimator,
        resume=resume,
        open_report=browser,
        console=_console(plain),
    )


def main() -> None:
    """Entry point; the package's own errors become one line and exit code 2."""
    try:
        app()
    except MilegpoError as error:
        sys.stderr.write(f"milegpo: {' '.join(str(error).split())}\n")
        raise SystemExit(2) from None


def _console(plain: bool) -> Console:
    """Tables go to standard error when JSON goes to standard output."""
    from rich.console import Console

    to_stdout = "-" in sys.argv
    width = None if sys.stdout.isatty() else 200
    return Console(stderr=to_stdout, no_color=plain or None, highlight=False, width=width, soft_wrap=plain)


def _read(
    paths: list[Path], logs: list[Path] | None, task_attribute: str | None, rewards: Path | None
) -> Input:
    from milegpo_plugin.files import read_input

    return read_input(paths, logs=logs or (), options=_options(task_attribute, rewards))


def _options(task_attribute: str | None, rewards: Path | None) -> ReconstructOptions:
    from milegpo_plugin.files import read_rewards
    from milegpo_plugin.trajectories import ReconstructOptions

    return ReconstructOptions(
        task_attribute=task_attribute, rewards=read_rewards(rewards) if rewards is not None else {}
    )


def _credit_config(
    estimator: str | None, stage: str | None, preset: str | None, file: Path | None, threshold: float | None
) -> CreditConfig:
    """Preset, then file, then options: the later wins."""
    from milegpo_plugin.config import CreditConfig, read_yaml

    values: dict[str, Any] = read_yaml(file) if file is not None else {}
    chosen = preset or values.pop("preset", None)
    values.pop("preset", None)
    options = {"estimator": estimator, "stage": stage, "success_threshold": threshold}
    values |= {name: value for name, value in options.items() if value is not None}
    return CreditConfig.preset(chosen, **values) if chosen else CreditConfig.load(values)


def _print_problems(console: Console, found: Input, skipped: Any = ()) -> None:
    from milegpo_plugin.report import tables

    _print_if(console, tables.flag_table(found.trajectories))
    _print_if(console, tables.skip_table([*found.skipped, *skipped]))
    for note in found.notes:
        console.print(f"note: {note}", highlight=False)


def _print_if(console: Console, table: Any) -> None:
    if table is not None:
        console.print()
        console.print(table)
