from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from milegpo_plugin.errors import TrainingError
from milegpo_plugin.local.learner import Learner
from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.settings import LearnerSettings
from milegpo_plugin.rows import RowBatch

ToRows = Callable[..., RowBatch]
MakePolicy = Callable[..., Policy]


@pytest.fixture
def game(act: Callable[..., Any]) -> list[dict[str, Any]]:
    """The same decision many times, behind prompts of several lengths."""
    return [
        {
            "messages": [{"role": "user", "content": "You are in the kitchen. " * (1 + index % 4)}],
            "tools": act("move north", "move east", "take coin"),
            "tool_choice": "required",
        }
        for index in range(32)
    ]


def coin(text: str) -> float:
    return 1.0 if "take coin" in text else -0.5


def weights(policy: Policy) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in policy.trainable()}


def largest_change(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> float:
    return max(float((before[name] - after[name]).abs().max()) for name in before)


@pytest.mark.parametrize("loss_mean", ["token", "row"])
def test_a_rewarded_tool_call_becomes_likelier(
    make_policy: MakePolicy, game: list[dict[str, Any]], to_rows: ToRows, loss_mean: str
) -> None:
    policy = make_policy(seed=3)
    learner = Learner(policy, LearnerSettings(learning_rate=3e-3, minibatch_rows=16, loss_mean=loss_mean))
    rates = []
    for _ in range(8):
        rows = to_rows(policy, game, coin)
        rates.append(np.mean([row.advantage > 0 for row in rows.rows]))
        metrics = learner.update(rows)
        policy.records.clear()
    assert rates[0] < 0.75
    assert rates[-1] > 0.9
    assert metrics["rows"] == 32
    assert metrics["entropy"] < 0.6


def test_adapters_learn_too_and_the_base_stays(
    lora_policy: Callable[[], Policy], game: list[dict[str, Any]], to_rows: ToRows
) -> None:
    policy = lora_policy()
    base = {
        name: value.detach().clone()
        for name, value in policy.module.named_parameters()
        if not value.requires_grad
    }
    learner = Learner(policy, LearnerSettings(learning_rate=3e-2, minibatch_rows=8, kl_coefficient=0.001))
    rates = []
    for _ in range(6):
        rows = to_rows(policy, game[:16], coin)
        rates.append(np.mean([row.advantage > 0 for row in rows.rows]))
        metrics = learner.update(rows)
        policy.records.clear()
    assert rates[-1] > rates[0] + 0.2
    assert metrics["kl"] > 0
    assert all("lora" in name for name, _ in policy.trainable())
    assert all(torch.equal(value, policy.module.get_parameter(name)) for name, value in base.items())


def test_the_order_of_rows_changes_nothing(
    make_policy: MakePolicy, game: list[dict[str, Any]], to_rows: ToRows
) -> None:
    results = []
    for order in (1, -1):
        policy = make_policy()
        rows = to_rows(policy, game, coin)
        Learner(policy, LearnerSettings(minibatch_rows=8)).update(RowBatch(rows.rows[::order]))
        results.append(weights(policy))
    assert largest_change(*results) == 0.0


@pytest.mark.parametrize("loss_mean", ["token", "row"])
def test_gradient_accumulation_does_not_change_the_step(
    make_policy: MakePolicy, game: list[dict[str, Any]], to_rows: ToRows, loss_mean: str
) -> None:
    results = []
    for microbatch_tokens in (100, 100_000):
        policy = make_policy()
        rows = to_rows(policy, game, coin)
        settings = LearnerSettings(
            loss_mean=loss_mean, microbatch_tokens=microbatch_tokens, learning_rate=1e-4
        )
        Learner(policy, settings).update(rows)
        results.append(weights(policy))
    assert largest_change(*results) < 1e-5


def test_equal_rows_and_settings_give_equal_weights(
    make_policy: MakePolicy, game: list[dict[str, Any]], to_rows: ToRows
) -> None:
    results = []
    for _ in range(2):
        policy = make_policy()
        Learner(policy, LearnerSettings(epochs=2, minibatch_rows=8)).update(to_rows(policy, game, coin))
        results.append(weights(policy))
    assert largest_change(*results) == 0.0


def test_scaling_makes_the_size_of_rewards_irrelevant(
    make_policy: MakePolicy, game: list[dict[str, Any]], to_rows: ToRows
) -> None:
    results = []
    for size in (1.0, 1000.0):
        policy = make_policy()
        rows = to_rows(policy, game, lambda text, size=size: size * coin(text))
        Learner(policy, LearnerSettings(learning_rate=1e-4)).update(rows)
        results.append(weights(policy))
    assert largest_change(*results) < 1e-6


def test_rows_without_a_record_or_a_choice_are_counted(
    make_policy: MakePolicy, game: list[dict[str, Any]], act: Callable[..., Any], to_rows: ToRows
) -> None:
    policy = make_policy()
    forced = {**game[0], "tools": act("take coin")}
    rows = to_rows(policy, [*game[:5], forced], coin)
    stranger = replace(rows.rows[0], response_token_ids_T=np.array([5, 6, 7]))
    metrics = Learner(policy).update(RowBatch((*rows.rows, stranger)))
    assert metrics["skipped_no_sampling_record"] == 1
    assert metrics["skipped_no_choice"] == 1
    assert metrics["rows"] == 5
    assert metrics["tokens"] >= 5


def test_an_update_without_usable_rows_changes_nothing(make_policy: MakePolicy) -> None:
    policy = make_policy()
    before = weights(policy)
    metrics = Learner(policy).update(RowBatch(()))
    assert metrics["rows"] == 0
    assert "loss" not in metrics
    assert largest_change(before, weights(policy)) == 0.0


def test_a_loss_that_is_not_finite_names_the_step_and_leaves_the_weights(
    make_policy: MakePolicy, game: list[dict[str, Any]], to_rows: ToRows
) -> None:
    policy = make_policy()
    rows = to_rows(policy, game, lambda text: float("inf"))
    before = weights(policy)
    with pytest.raises(TrainingError, match="update 0, optimizer step 0: the loss must be finite, got"):
        Learner(policy, LearnerSettings(scale_advantages=False)).update(rows)
    assert largest_change(before, weights(policy)) == 0.0


def test_the_rate_falls_linearly_to_zero(
    make_policy: MakePolicy, game: list[dict[str, Any]], to_rows: ToRows
) -> None:
    policy = make_policy()
    learner = Learner(policy, LearnerSettings(learning_rate=1e-3, total_iterations=4))
    rates = [learner.update(to_rows(policy, game[:2], coin))["learning_rate"] for _ in range(5)]
    assert rates == pytest.approx([1e-3, 7.5e-4, 5e-4, 2.5e-4, 0.0])


def test_the_pull_to_the_first_policy_keeps_it_near(
    make_policy: MakePolicy, game: list[dict[str, Any]], to_rows: ToRows
) -> None:
    drift = {}
    for coefficient in (1e-6, 5.0):
        policy = make_policy()
        learner = Learner(policy, LearnerSettings(kl_coefficient=coefficient, entropy_coefficient=0.0))
        for _ in range(5):
            metrics = learner.update(to_rows(policy, game, coin))
            policy.records.clear()
        drift[coefficient] = metrics["kl"]
    assert drift[5.0] < drift[1e-6] / 2


def test_the_version_counts_updates(
    make_policy: MakePolicy, game: list[dict[str, Any]], to_rows: ToRows
) -> None:
    policy = make_policy()
    learner = Learner(policy)
    learner.update(to_rows(policy, game[:2], coin))
    assert (policy.version, learner.iteration) == (1, 1)
