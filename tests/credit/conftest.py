from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.types import Step, Trajectory

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def vectors() -> list[dict[str, Any]]:
    return json.loads((ROOT / "tests/data/credit_vectors.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def oracle() -> ModuleType:
    """The same equations in plain Python."""
    spec = importlib.util.spec_from_file_location("plain_credit", ROOT / "benchmarks/plain_credit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def rollout() -> Callable[..., Trajectory]:
    """A trajectory from its states."""

    def build(states: Sequence[str], reward: float | None = None, **fields: Any) -> Trajectory:
        rewards = fields.pop("step_rewards", [None] * len(states))
        steps = [Step(state=state, reward=own) for state, own in zip(states, rewards, strict=True)]
        fields = {"task_id": "task", "rollout_id": "r0", **fields}
        return Trajectory(reward=reward, steps=steps, **fields)

    return build


@pytest.fixture(scope="session")
def from_vector(rollout: Callable[..., Trajectory]) -> Callable[[dict[str, Any]], Any]:
    """The trajectories and settings of a vector."""

    def build(vector: dict[str, Any], **changes: Any) -> tuple[list[Trajectory], CreditConfig]:
        trajectories = [
            rollout(item["states"], item["reward"], final_state=item["final"], rollout_id=f"{index:02d}")
            for index, item in enumerate(vector["trajectories"])
        ]
        settings = {"stage": vector["stage"], "success_threshold": vector["success_threshold"], **changes}
        return trajectories, CreditConfig.preset(vector["preset"], **settings)

    return build
