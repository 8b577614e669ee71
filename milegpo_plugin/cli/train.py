"""``milegpo train`` and ``milegpo quickstart``: agents in, better policies out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milegpo_plugin.cli.options import EstimatorName, Plain, make_console


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
    runners: Annotated[
        int | None, typer.Option(min=1, help="Agent processes, one rollout each at a time.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write event files for TensorBoard.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, print the plan, start nothing.")
    ] = False,
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
        runners=runners,
        resume=resume,
        tensorboard=tensorboard,
        dry_run=dry_run,
        console=make_console(plain),
    )


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
        console=make_console(plain),
    )
