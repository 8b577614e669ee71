from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from milegpo_plugin.agl.rollouts import Collected, Task
from milegpo_plugin.local.algorithm import Silent
from milegpo_plugin.local.learner import Learner
from milegpo_plugin.local.loop import TrainingLoop
from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.run_directory import RunDirectory
from milegpo_plugin.local.train_config import TrainConfig
from milegpo_plugin.types import Step, Trajectory

TASKS = [Task("one", {})]


class Stopped(Exception):
    """What a person does with Ctrl-C."""


class Platform:
    """Runs nothing; training stops at once."""

    def __init__(self) -> None:
        self.phases: list[str] = []

    async def __call__(self, tasks: Any, *, repeats: int, validation: bool, on_progress: Any) -> Collected:
        self.phases.append("validation" if validation else "training")
        if not validation:
            raise Stopped
        return Collected([], [], 0.0, 0.0)


def phases(policy: Policy, folder: Path, *, resume: bool) -> list[str]:
    platform = Platform()
    directory = RunDirectory(folder, resume=resume)
    loop = TrainingLoop(TrainConfig(), policy, Learner(policy), platform, directory, Silent())
    with pytest.raises(Stopped):
        asyncio.run(loop.run(TASKS, TASKS))
    return platform.phases


class Judge(Platform):
    """Validates with given rewards, one a validation; training gives rollouts without token ids."""

    def __init__(self, rewards: list[float]) -> None:
        super().__init__()
        self.rewards = rewards

    async def __call__(self, tasks: Any, *, repeats: int, validation: bool, on_progress: Any) -> Collected:
        reward = self.rewards.pop(0) if validation else 1.0
        steps = [Step(state="hall")]
        rollouts = [
            Trajectory(task_id="one", rollout_id=str(index), reward=reward, steps=steps)
            for index in range(repeats)
        ]
        return Collected(rollouts, [], 0.0, 0.0)


def test_the_best_checkpoint_is_that_of_the_best_validation_and_the_latest_of_equals(
    policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[tuple[str, int]] = []
    monkeypatch.setattr(TrainingLoop, "save", lambda loop, name: saved.append((name, loop.iteration)))
    monkeypatch.setattr(TrainingLoop, "_update", lambda loop, rows: {})
    config = TrainConfig.load({"train": {"iterations": 4, "validate_every": 1}})
    platform, directory = Judge([0.0, 1.0, 0.0, 1.0, 0.0]), RunDirectory(tmp_path)
    loop = TrainingLoop(config, policy, Learner(policy), platform, directory, Silent())
    asyncio.run(loop.run(TASKS, TASKS))
    assert [iteration for name, iteration in saved if name == "best"] == [0, 1, 3]
    assert [iteration for name, iteration in saved if name == "last"] == [0, 1, 2, 3, 4]
    assert [line["validation/success"] for line in directory.read_metrics()] == [0.0, 1.0, 0.0, 1.0, 0.0]


def test_a_run_that_stopped_after_its_first_validation_does_not_repeat_it(
    policy: Policy, tmp_path: Path
) -> None:
    assert phases(policy, tmp_path, resume=False) == ["validation", "training"]
    assert phases(policy, tmp_path, resume=True) == ["training"]
    assert [line["iteration"] for line in RunDirectory(tmp_path, resume=True).read_metrics()] == [0]


class Deaf(Judge):
    """A platform that swallows a cancellation in its second training iteration."""

    async def __call__(self, tasks: Any, *, repeats: int, validation: bool, on_progress: Any) -> Collected:
        collected = await super().__call__(
            tasks, repeats=repeats, validation=validation, on_progress=on_progress
        )
        self.phases.append("validation" if validation else "training")
        task = asyncio.current_task()
        if self.phases.count("training") == 2 and task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        return collected


def test_ctrl_c_that_the_platform_swallows_stops_the_run_all_the_same(
    policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrainingLoop, "_update", lambda loop, rows: {})
    config = TrainConfig.load({"train": {"iterations": 4, "validate_every": 4}})
    platform, directory = Deaf([0.0]), RunDirectory(tmp_path)
    loop = TrainingLoop(config, policy, Learner(policy), platform, directory, Silent())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(loop.run(TASKS, TASKS))
    assert platform.phases == ["validation", "training", "training"]
    assert [line["iteration"] for line in directory.read_metrics()] == [0, 1]
