from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from milegpo_plugin.errors import InputNotFoundError
from milegpo_plugin.local import checkpoints
from milegpo_plugin.local.learner import Learner
from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.settings import LearnerSettings, LocalSettings
from milegpo_plugin.rows import RowBatch

SETTINGS = LocalSettings(learner=LearnerSettings(minibatch_rows=4, total_iterations=5, kl_coefficient=0.01))


@pytest.fixture
def train(act: Callable[..., Any], to_rows: Callable[..., RowBatch]) -> Callable[..., list[float]]:
    """Run some iterations; the loss of each."""

    def run(policy: Policy, learner: Learner, iterations: int) -> list[float]:
        request = {
            "messages": [{"role": "user", "content": "kitchen"}],
            "tools": act("move north", "move east", "take coin"),
            "tool_choice": "required",
        }
        losses = []
        for _ in range(iterations):
            rows = to_rows(policy, [request] * 8, lambda text: 1.0 if "coin" in text else -0.3)
            losses.append(learner.update(rows)["loss"])
            policy.records.clear()
        return losses

    return run


@pytest.fixture(params=["tiny", "lora"])
def start(request: pytest.FixtureRequest, make_policy: Any, lora_policy: Any) -> Callable[[], Policy]:
    chosen: Callable[[], Policy] = make_policy if request.param == "tiny" else lora_policy
    return chosen


def test_a_resumed_run_goes_on_with_the_same_numbers(
    start: Callable[[], Policy], train: Callable[..., list[float]], tmp_path: Path
) -> None:
    policy = start()
    learner = Learner(policy, SETTINGS.learner)
    train(policy, learner, 2)
    checkpoints.save(tmp_path / "last", policy, learner, {"best": 0.5})
    expected = train(policy, learner, 2)

    resumed, its_learner, extra = checkpoints.load(tmp_path / "last", SETTINGS)
    assert extra == {"best": 0.5}
    assert train(resumed, its_learner, 2) == expected
    for (name, one), (_, two) in zip(policy.trainable(), resumed.trainable(), strict=True):
        assert torch.equal(one, two), name


def test_a_save_replaces_the_earlier_one(make_policy: Callable[..., Policy], tmp_path: Path) -> None:
    policy = make_policy()
    learner = Learner(policy)
    for number in (1, 2):
        checkpoints.save(tmp_path / "last", policy, learner, {"number": number})
    assert checkpoints.load(tmp_path / "last", LocalSettings()).extra == {"number": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


def test_the_former_checkpoint_is_found_when_a_save_was_cut_off(
    make_policy: Callable[..., Policy], tmp_path: Path
) -> None:
    policy = make_policy()
    checkpoints.save(tmp_path / "last", policy, Learner(policy), {"number": 1})
    (tmp_path / "last").rename(tmp_path / "last.old")
    assert checkpoints.load(tmp_path / "last", LocalSettings()).extra == {"number": 1}


def test_a_folder_without_a_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError, match="no complete checkpoint"):
        checkpoints.load(tmp_path / "none", LocalSettings())
