from __future__ import annotations

import asyncio
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


def test_a_run_that_stopped_after_its_first_validation_does_not_repeat_it(
    policy: Policy, tmp_path: Path
) -> None:
    assert phases(policy, tmp_path, resume=False) == ["validation", "training"]
    assert phases(policy, tmp_path, resume=True) == ["training"]
    assert [line["iteration"] for line in RunDirectory(tmp_path, resume=True).read_metrics()] == [0]
