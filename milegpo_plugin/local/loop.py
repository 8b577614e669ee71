"""The training loop: collect, assign credit, update, validate, keep what happened.

It knows no platform: ``Collect`` runs tasks with the current policy and returns trajectories.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from milegpo_plugin.agl.rollouts import Collected, Task
from milegpo_plugin.credit import Credit, assign_credit
from milegpo_plugin.errors import CreditError, TrainingError
from milegpo_plugin.local import checkpoints
from milegpo_plugin.local.learner import Learner
from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.run_directory import RunDirectory
from milegpo_plugin.local.token_ids import fill_token_ids
from milegpo_plugin.local.train_config import TrainConfig
from milegpo_plugin.rows import RowBatch, build_rows
from milegpo_plugin.types import Skipped, Trajectory

Metrics = dict[str, Any]
T = TypeVar("T")


class Collect(Protocol):
    """Runs tasks with the current policy."""

    async def __call__(
        self, tasks: Sequence[Task], *, repeats: int, validation: bool, on_progress: Callable[[int], None]
    ) -> Collected:
        """Run every task ``repeats`` times; ``on_progress`` gets the number of finished rollouts."""
        ...


class Observer(Protocol):
    """Whoever shows the progress to a person."""

    def on_rollouts(self, phase: str, done: int, total: int) -> None:
        """``done`` of ``total`` rollouts of this phase have ended."""

    def on_iteration(self, metrics: Metrics) -> None:
        """An iteration, or a validation, is complete."""


@dataclass
class TrainingLoop:
    """One training run over fixed tasks.

    Args:
        config: every setting.
        policy, learner: the model and what changes it.
        collect: runs tasks with the current policy.
        directory: where everything is kept.
        observer: shows the progress.
        iteration: iterations already done; more than 0 after a resume.
        best: best validation success so far; None before the first validation.
        elapsed: seconds of training before a resume.
    """

    config: TrainConfig
    policy: Policy
    learner: Learner
    collect: Collect
    directory: RunDirectory
    observer: Observer
    iteration: int = 0
    best: float | None = None
    elapsed: float = 0.0
    started: float = field(default_factory=time.monotonic)

    async def run(self, train: Sequence[Task], validation: Sequence[Task]) -> None:
        """Run the remaining iterations.

        Raises:
            TrainingError: no rollout of an iteration can be used, with the commonest reason.
        """
        if self.iteration == 0 and self.directory.next_iteration == 0:
            await self._finish({"iteration": 0}, validation, validate=True)
        while self.iteration < self.config.train.iterations:
            metrics = await self._iterate(self._draw(train))
            self.iteration += 1
            due = self.iteration % self.config.train.validate_every == 0
            last = self.iteration == self.config.train.iterations
            await self._finish(metrics, validation, validate=due or last)
            if not last:
                _heed_cancellation()

    def _draw(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks of this iteration; a pure function of seed and iteration, so a resume repeats it."""
        count = min(self.config.train.tasks_per_iteration, len(tasks))
        return random.Random(f"{self.config.train.seed}/{self.iteration}").sample(list(tasks), count)

    async def _iterate(self, tasks: Sequence[Task]) -> Metrics:
        repeats = self.config.train.rollouts_per_task
        total = len(tasks) * repeats
        collected = await self.collect(
            tasks,
            repeats=repeats,
            validation=False,
            on_progress=lambda done: self.observer.on_rollouts("rollouts", done, total),
        )
        _heed_cancellation()
        self.observer.on_rollouts("update", total, total)
        filled = fill_token_ids(collected.trajectories, self.policy.records)
        collected = replace(collected, trajectories=filled)
        credit, credit_seconds = timed(lambda: _credit(collected, self.config))
        self.directory.write_rollouts(self.iteration + 1, collected.trajectories, credit)
        rows = self._rows(collected.trajectories, credit)
        learned, update_seconds = await asyncio.to_thread(timed, lambda: self._update(rows))
        self.policy.records.clear()
        return {
            "iteration": self.iteration + 1,
            **outcome_metrics(collected.trajectories, self.config.credit.success_threshold),
            **{f"credit/{name}": value for name, value in credit.metrics().items()},
            **{f"learner/{name}": value for name, value in learned.items()},
            "skipped": count_reasons(collected.skipped, credit.skipped, rows.skipped),
            "seconds/collect": collected.seconds,
            "seconds/agent": collected.agent_seconds / self.config.train.runners,
            "seconds/credit": credit_seconds,
            "seconds/update": update_seconds,
        }

    def _rows(self, trajectories: Sequence[Trajectory], credit: Credit) -> RowBatch:
        server = self.config.server
        return build_rows(
            trajectories,
            credit,
            max_prompt_tokens=server.max_prompt_tokens,
            max_response_tokens=server.max_response_tokens,
        )

    def _update(self, rows: RowBatch) -> dict[str, float]:
        if not len(rows):
            reasons = ", ".join(f"{reason}: {count}" for reason, count in rows.skip_counts().items())
            raise TrainingError(f"iteration {self.iteration + 1}: no row to train on ({reasons})")
        metrics: dict[str, float] = self.learner.update(rows)
        return metrics

    async def _finish(self, metrics: Metrics, validation: Sequence[Task], *, validate: bool) -> None:
        if validate and validation:
            metrics |= await self._validate(validation)
        score = metrics.get("validation/success")
        if score is not None and (self.best is None or score >= self.best):
            self.best = score
            self.save("best")
        self.save("last")
        metrics["seconds/total"] = self._seconds()
        self.directory.append_metrics(metrics)
        self.observer.on_iteration(metrics)

    async def _validate(self, tasks: Sequence[Task]) -> Metrics:
        collected = await self.collect(
            tasks,
            repeats=1,
            validation=True,
            on_progress=lambda done: self.observer.on_rollouts("validation", done, len(tasks)),
        )
        self.policy.records.clear()
        metrics = outcome_metrics(collected.trajectories, self.config.credit.success_threshold)
        return {f"validation/{name}": value for name, value in metrics.items()} | {
            "seconds/validation": collected.seconds
        }

    def _seconds(self) -> float:
        return self.elapsed + time.monotonic() - self.started

    def save(self, name: str) -> None:
        """Write the named checkpoint; a resume starts from ``last``."""
        extra = {"iteration": self.iteration, "best": self.best, "elapsed": self._seconds()}
        checkpoints.save(self.directory.checkpoint(name), self.policy, self.learner, extra)


def _heed_cancellation() -> None:
    """Stop when Ctrl-C cancelled this task and a library swallowed it (``wait_for`` before Python 3.12 does)."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _credit(collected: Collected, config: TrainConfig) -> Credit:
    try:
        return assign_credit(collected.trajectories, config.credit)
    except CreditError as error:
        reasons = count_reasons(collected.skipped)
        details = "; ".join(f"{count}× {reason}" for reason, count in reasons.items())
        raise TrainingError(f"{error}{f' ({details})' if details else ''}") from error


def outcome_metrics(trajectories: Sequence[Trajectory], threshold: float = 0.0) -> Metrics:
    """Success, mean return and length of the rollouts; a rollout without outcome counts in neither."""
    scored = [t for t in trajectories if t.reward is not None and "failed" not in t.flags]
    steps = sum(len(t.steps) for t in trajectories)
    return {
        "rollouts": len(trajectories),
        "scored": len(scored),
        "success": _mean([_succeeded(t, threshold) for t in scored]),
        "return": _mean([t.reward for t in scored if t.reward is not None]),
        "steps": steps / len(trajectories) if trajectories else None,
    }


def _succeeded(trajectory: Trajectory, threshold: float) -> float:
    if trajectory.success is not None:
        return float(trajectory.success)
    return float(trajectory.reward is not None and trajectory.reward > threshold)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def count_reasons(*skipped: Iterable[Skipped]) -> dict[str, int]:
    """How often each reason left something out."""
    return dict(Counter(item.reason for items in skipped for item in items))


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """The result of ``work`` and the seconds it took."""
    start = time.monotonic()
    result = work()
    return result, time.monotonic() - start
