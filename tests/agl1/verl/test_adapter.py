"""Finished rollouts → Agent Lightning's own rows → verl's own advantages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from agentlightning.verl.rollout_adapter import RolloutAdapter
from agentlightning.verl.rollout_level_advantage import compute_rollout_level_advantage
from verl.trainer.ppo.ray_trainer import compute_advantage, compute_response_mask

from milegpo_plugin import CreditConfig, assign_credit
from milegpo_plugin.agl.settings import BackendSettings
from milegpo_plugin.agl.v1.rollouts import rebuild_rollouts
from milegpo_plugin.errors import TrainingError
from milegpo_plugin.trajectories import ReconstructOptions

LEVELS = ("transition", "trajectory")
Make = Callable[..., Any]


def train_step(batch: Any) -> Any:
    """The part of ``AgentLightningRayPPOTrainer._train_step`` between rows and actor, in its order."""
    batch.non_tensor_batch["uid"] = batch.non_tensor_batch["data_id_list"]
    if "response_mask" not in batch.batch:
        batch.batch["response_mask"] = compute_response_mask(batch)
    batch = batch[(~batch.batch["is_drop_mask"]).nonzero(as_tuple=True)[0].tolist()]
    batch.batch["token_level_rewards"] = batch.batch["token_level_scores"]
    return compute_advantage(batch, "milegpo")


def advantages_by_answer(batch: Any, completed: list[Any]) -> dict[tuple[str, int], list[float]]:
    """The distinct advantages on the tokens of each model call, found by its token ids in the rows."""
    found = {}
    rows = list(zip(batch.non_tensor_batch["rollout_id_list"], batch.batch["responses"], strict=True))
    for rollout in completed:
        for turn, triplet in enumerate(rollout.triplets):
            answer = torch.tensor(triplet.response["token_ids"])
            prompt_length = len(triplet.prompt["token_ids"])
            for row, (rollout_id, responses) in enumerate(rows):
                first = int(batch.batch["attention_mask"][row, : -len(responses)].sum())
                start = prompt_length - first
                if rollout_id == rollout.rollout_id and torch.equal(
                    responses[start : start + len(answer)], answer
                ):
                    values = batch.batch["advantages"][row, start : start + len(answer)]
                    found[rollout_id, turn] = torch.unique(values).tolist()
    return found


def expected_advantages(completed: list[Any], config: CreditConfig) -> dict[tuple[str, int], list[float]]:
    rebuilt = rebuild_rollouts(completed, ReconstructOptions())
    credit = assign_credit(rebuilt.trajectories, config)
    known = [(t.rollout_id, credit.advantages(index)) for index, t in enumerate(rebuilt.trajectories)]
    return {
        (rollout_id, step): [float(np.float32(value))]
        for rollout_id, values in known
        if values is not None
        for step, value in enumerate(values)
    }


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("estimator", ["milegpo", "grpo", "gigpo"])
def test_verl_sees_for_every_answer_the_advantage_of_its_step(
    completed: list[Any], make_adapter: Make, level: str, estimator: str
) -> None:
    config = CreditConfig(estimator=estimator)
    batch, _ = make_adapter(level, BackendSettings(credit=config)).get_train_data_batch(completed)
    assert batch.batch["token_level_scores"].dtype == torch.float32
    batch = train_step(batch)
    assert advantages_by_answer(batch, completed) == expected_advantages(completed, config)
    outside = batch.batch["advantages"] * (1 - batch.batch["response_mask"])
    assert not outside.any()


@pytest.mark.parametrize("level", LEVELS)
def test_steps_of_one_rollout_differ_and_upstream_would_refuse_that(
    completed: list[Any], make_adapter: Make, level: str
) -> None:
    batch, _ = make_adapter(level).get_train_data_batch(completed)
    trained = train_step(batch)
    first = trained.non_tensor_batch["rollout_id_list"] == completed[0].rollout_id
    values = trained.batch["advantages"][torch.from_numpy(first)]
    assert len(torch.unique(values[values != 0])) > 1
    with pytest.raises(RuntimeError, match="rollout-level advantage"):
        compute_rollout_level_advantage(trained, adv_estimator="milegpo", gamma=1.0, lam=1.0, num_repeat=4)


@pytest.mark.parametrize("level", LEVELS)
def test_rows_are_otherwise_those_of_the_stock_adapter(
    completed: list[Any], make_adapter: Make, level: str
) -> None:
    ours, _ = make_adapter(level).get_train_data_batch(completed)
    stock, _ = RolloutAdapter(
        max_prompt_length=400,
        max_response_length=600,
        device=torch.device("cpu"),
        pad_token_id=0,
        trace_aggregator_level=level,
    ).get_train_data_batch(completed)
    changed = {"token_level_scores", "is_drop_mask", "response_mask"}
    for name in set(stock.batch.keys()) - changed:
        assert torch.equal(ours.batch[name], stock.batch[name]), name
    assert "rollout_log_probs" in ours.batch.keys()  # noqa: SIM118
    for name, values in stock.non_tensor_batch.items():
        assert ours.non_tensor_batch[name].tolist() == values.tolist()


@pytest.mark.parametrize("level", LEVELS)
def test_rows_that_the_trainer_drops_later_do_not_change_anybody_elses_credit(
    completed: list[Any], make_adapter: Make, level: str
) -> None:
    batch, _ = make_adapter(level).get_train_data_batch(completed)
    batch.batch["is_drop_mask"][::2] = True
    kept = advantages_by_answer(train_step(batch), completed)
    expected = expected_advantages(completed, CreditConfig())
    assert kept
    assert all(expected[key] == value for key, value in kept.items())


@pytest.mark.parametrize(
    ("on_failure", "trained"), [("drop", False), ("zero", True)], ids=["dropped", "counted as 0"]
)
def test_a_failed_rollout_is_trained_only_when_asked_for(
    completed: list[Any], make_adapter: Make, on_failure: str, trained: bool
) -> None:
    settings = BackendSettings(credit=CreditConfig(on_failure=on_failure))
    batch, metrics = make_adapter("transition", settings).get_train_data_batch(completed)
    failed = batch.non_tensor_batch["rollout_id_list"] == completed[8].rollout_id
    assert batch.batch["is_drop_mask"][torch.from_numpy(failed)].tolist() == [not trained]
    assert metrics.get("milegpo/skipped/failed", 0.0) == float(not trained)


def test_a_prompt_that_is_too_long_loses_its_row_but_keeps_its_place_in_the_graph(
    completed: list[Any], make_adapter: Make
) -> None:
    longest = max(len(t.prompt["token_ids"]) for rollout in completed for t in rollout.triplets)
    batch, metrics = make_adapter("transition", prompt=longest - 1).get_train_data_batch(completed)
    assert metrics["milegpo/steps_skipped/prompt_too_long"] > 0
    kept = advantages_by_answer(train_step(batch), completed)
    expected = expected_advantages(completed, CreditConfig())
    assert 0 < len(kept) < len(expected)
    assert all(expected[key] == value for key, value in kept.items())


def test_a_row_that_is_cut_keeps_the_credit_of_what_is_left(completed: list[Any], make_adapter: Make) -> None:
    batch, metrics = make_adapter("trajectory", response=100).get_train_data_batch(completed)
    batch = train_step(batch)
    expected = expected_advantages(completed, CreditConfig())
    for row, rollout_id in enumerate(batch.non_tensor_batch["rollout_id_list"]):
        values = batch.batch["advantages"][row, batch.batch["response_mask"][row].bool()]
        assert values[0].item() == expected[rollout_id, 0][0]
    assert metrics["milegpo/steps_skipped/response_too_long"] > 0


def test_tokens_that_rejection_sampling_masks_cost_no_other_token_its_advantage(
    completed: list[Any], make_adapter: Make
) -> None:
    batch, _ = make_adapter("trajectory").get_train_data_batch(completed)
    before = train_step(batch).batch["advantages"]
    last = batch.batch["response_mask"].cumsum(dim=-1).argmax(dim=-1)
    batch.batch["response_mask"][torch.arange(len(batch)), last] = 0
    after = train_step(batch).batch["advantages"]
    changed = (before != after).sum(dim=-1)
    assert changed.max() == 1


def test_the_figures_of_the_credit_stand_beside_those_of_the_platform(
    completed: list[Any], make_adapter: Make
) -> None:
    _, metrics = make_adapter("trajectory").get_train_data_batch(completed)
    assert metrics["training/n_rollouts"] == 9
    assert metrics["milegpo/rollouts"] == 8.0
    assert metrics["milegpo/groups"] == 2.0
    assert metrics["milegpo/outcome_reward"] == pytest.approx(5 / 8)
    assert metrics["milegpo/flags/failed"] == 1.0
    assert metrics["milegpo/credit_seconds"] > 0
    assert all(isinstance(value, float) for name, value in metrics.items() if name.startswith("milegpo/"))


def test_groups_that_arrive_incomplete_and_groups_of_one_are_warned_of(
    completed: list[Any], make_adapter: Make, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        _, metrics = make_adapter("transition").get_train_data_batch([completed[0], completed[4]])
    assert metrics["milegpo/groups_incomplete"] == 2.0
    assert "2 groups have fewer than the 4 rollouts" in caplog.text
    assert "2 of 2 groups have one usable rollout" in caplog.text


def test_a_step_is_dumped_for_the_report(completed: list[Any], make_adapter: Make, tmp_path: Path) -> None:
    adapter = make_adapter("transition", BackendSettings(dump_dir=tmp_path))
    adapter.get_train_data_batch(completed, global_steps=7)
    lines = (tmp_path / "step_000007" / "credit.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == sum(len(rollout.triplets) for rollout in completed)


def test_a_batch_without_an_outcome_says_why(completed: list[Any], make_adapter: Make) -> None:
    for rollout in completed:
        rollout.events = [event for event in rollout.events if event["event_type"] != "reward"]
    with pytest.raises(TrainingError, match=r"step 3: no outcomes: .*the agent raised RuntimeError"):
        make_adapter("transition").get_train_data_batch(completed, global_steps=3)


def test_a_batch_without_token_ids_says_so(completed: list[Any], make_adapter: Make) -> None:
    for rollout in completed:
        rollout.triplets = []
    with pytest.raises(TrainingError, match="step 3: no model call has token ids"):
        make_adapter("transition").get_train_data_batch(completed, global_steps=3)
