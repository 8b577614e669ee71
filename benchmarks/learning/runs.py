"""One training run, and many of them side by side in processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.learning.games import Instance, load
from benchmarks.learning.params import Params
from benchmarks.learning.playing import Player
from milegpo_plugin.agl.rollouts import Task
from milegpo_plugin.local.learner import Learner
from milegpo_plugin.local.loop import TrainingLoop
from milegpo_plugin.local.model import build_policy, use_threads
from milegpo_plugin.local.run_directory import RunDirectory

Metrics = dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Job:
    """One training run."""

    game: str
    estimator: str
    seed: int


class Silent:
    """An observer that shows nothing."""

    def on_rollouts(self, phase: str, done: int, total: int) -> None:
        """Rollouts have ended."""

    def on_iteration(self, metrics: dict[str, Any]) -> None:
        """An iteration is complete."""


def all_jobs(params: Params) -> Iterator[Job]:
    """Seed by seed, so that an early stop leaves every estimator with the same seeds."""
    for seed in range(params.seeds):
        for game in params.games:
            for estimator in params.estimators:
                yield Job(game, estimator, seed)


def run_missing(params: Params, jobs: Sequence[Job], processes: int) -> Iterator[tuple[Job, list[Metrics]]]:
    """The metrics of every job as it ends, whatever the order."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for game in {job.game for job in jobs}:
        instances(params, game)
    with get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(partial(_run, params), jobs)


def instances(params: Params, game: str) -> tuple[list[Instance], list[Instance]]:
    """Training and held-out instances."""
    found = load(game, params.training_instances + params.held_out_instances)
    return found[: params.training_instances], found[params.training_instances :]


def _run(params: Params, job: Job) -> tuple[Job, list[Metrics]]:
    with TemporaryDirectory() as folder:
        return job, train(params, job, Path(folder))


def train(params: Params, job: Job, folder: Path) -> list[Metrics]:
    """Train once with the loop of ``milegpo train``; returns its metrics, one record an iteration."""
    config = params.config(job.estimator, job.seed)
    use_threads(config.threads)
    training, held_out = instances(params, job.game)
    game = params.games[job.game]
    texts = [game.instruction, *(text for instance in training for text in instance.text_N)]
    policy = build_policy(config.model, sample_texts=texts, seed=job.seed)
    by_id = {str(instance.seed): instance for instance in (*training, *held_out)}
    player = Player(policy, config.server, by_id, game.instruction, game.turns)
    directory = RunDirectory(folder)
    learner = Learner(policy, config.local.learner)
    loop = TrainingLoop(config, policy, learner, player, directory, Silent())
    asyncio.run(loop.run(_tasks(training), _tasks(held_out)))
    return directory.read_metrics()


def _tasks(found: Sequence[Instance]) -> list[Task]:
    return [Task(str(instance.seed), {}) for instance in found]
