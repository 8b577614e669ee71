from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import strategies as st

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.types import Step, Trajectory

ROOT = Path(__file__).parents[2]
STATES = ("a", "b", "c", "d", "e", "état ü", "")


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
    sys.modules["plain_credit"] = module  # where dataclasses look up their annotations
    spec.loader.exec_module(module)
    return module


def build_rollout(states: Sequence[str], reward: float | None = None, **fields: Any) -> Trajectory:
    rewards = fields.pop("step_rewards", None) or [None] * len(states)
    steps = [Step(state=state, reward=own) for state, own in zip(states, rewards, strict=True)]
    fields = {"task_id": "task", "rollout_id": "r0", **fields}
    return Trajectory(reward=reward, steps=steps, **fields)


@pytest.fixture(scope="session")
def rollout() -> Callable[..., Trajectory]:
    """A trajectory from its states."""
    return build_rollout


@pytest.fixture(scope="session")
def from_vector() -> Callable[..., tuple[list[Trajectory], CreditConfig]]:
    """The trajectories and settings of a vector."""

    def build(vector: dict[str, Any], **changes: Any) -> tuple[list[Trajectory], CreditConfig]:
        trajectories = [
            build_rollout(
                item["states"], item["reward"], final_state=item["final"], rollout_id=f"{index:02d}"
            )
            for index, item in enumerate(vector["trajectories"])
        ]
        settings = {"stage": vector["stage"], "success_threshold": vector["success_threshold"], **changes}
        return trajectories, CreditConfig.preset(vector["preset"], **settings)

    return build


@st.composite
def _rollouts(draw: st.DrawFn, task_id: str, number: int, rewards: st.SearchStrategy[float]) -> Trajectory:
    states = draw(st.lists(st.sampled_from(STATES), min_size=1, max_size=12))
    return build_rollout(
        states,
        draw(rewards),
        success=draw(st.sampled_from([None, None, None, True, False])),
        final_state=draw(st.sampled_from([None, *STATES])),
        task_id=task_id,
        rollout_id=f"{number:02d}",
    )


@st.composite
def _batches(draw: st.DrawFn, max_groups: int = 3) -> list[Trajectory]:
    """Groups of 1 to 8 rollouts over few states: loops, cycles, dead ends, any outcome."""
    batch = []
    for group in range(draw(st.integers(1, max_groups))):
        scale = draw(st.sampled_from([1.0, 0.35, 1e-9, 1e9]))
        levels = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 0.5, 0.1, -1.0]), min_size=1, max_size=3))
        rewards = st.sampled_from([level * scale for level in levels])
        size = draw(st.integers(1, 8))
        batch += [draw(_rollouts(f"task {group}", number, rewards)) for number in range(size)]
    return batch


@st.composite
def _settings_of_credit(draw: st.DrawFn, **fixed: Any) -> CreditConfig:
    """Any settings of the method, drawn from round values."""
    weight = st.sampled_from([0.0, 0.25, 1.0, 2.0])
    drawn = {
        "stage": draw(st.sampled_from(["graph", "md", "rcs", "pcc"])),
        "norm": draw(st.sampled_from(["mean", "mean_std"])),
        "mix_weight": draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])),
        "potential_decay": draw(st.sampled_from([0.2, 0.5, 0.9])),
        "potential_discount": draw(st.sampled_from([1.0, 0.9])),
        "graph_discount": draw(st.sampled_from([0.2, 0.9, 1.0])),
        "min_support": draw(st.integers(1, 3)),
        "min_trap_visits": draw(st.integers(1, 3)),
        "min_trap_score": draw(st.sampled_from([0.0, 0.1, 0.3])),
        "support_threshold": draw(st.sampled_from([0.0, 0.5, 1.1])),
        "unsupported_factor": draw(st.sampled_from([0.0, 0.5])),
        "keep_branch": draw(st.booleans()),
        "success_threshold": draw(st.sampled_from([0.0, 0.2])),
    }
    weights = (
        "milestone_weight",
        "trap_weight",
        "success_lift_weight",
        "coverage_weight",
        "centrality_weight",
    )
    weights += (
        "failure_lift_weight",
        "loop_weight",
        "branch_weight",
        "progress_weight",
        "calibration_weight",
    )
    weights += (
        "progress_distance_weight",
        "progress_success_weight",
        "progress_failure_weight",
        "step_weight",
    )
    return CreditConfig.load({**drawn, **{name: draw(weight) for name in weights}, **fixed})


@pytest.fixture(scope="session")
def batches() -> Callable[..., st.SearchStrategy[list[Trajectory]]]:
    return _batches


@pytest.fixture(scope="session")
def settings_of_credit() -> Callable[..., st.SearchStrategy[CreditConfig]]:
    return _settings_of_credit
