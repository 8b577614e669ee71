"""Finished rollouts of the real store → the batch that the trainer gets."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch
from agentlightning.verl.daemon import AgentModeDaemon

from milegpo_plugin import CreditConfig
from milegpo_plugin.agl.verl.triplets import TripletAdapter
from milegpo_plugin.credit import assign_credit
from milegpo_plugin.errors import TrainingError
from milegpo_plugin.files import read_trajectories


def step_scores(batch: Any) -> dict[str, dict[int, float]]:
    """Score of every row by rollout and first step."""
    found: dict[str, dict[int, float]] = {}
    scores = batch.batch["token_level_scores"].sum(-1)
    rows = zip(
        batch.non_tensor_batch["rollout_id_list"],
        batch.non_tensor_batch["turn_index_list"],
        scores.tolist(),
        strict=True,
    )
    for rollout_id, step, score in rows:
        found.setdefault(str(rollout_id), {})[int(step)] = score
    return found


def problems_of(stage: Any) -> list[tuple[str, str]]:
    played = stage.daemon._in_queue_order()
    return [(problem.kind, problem.reason) for item in played for problem in item.problems]


def with_one(odd: Any, walks: Any) -> Any:
    """The usual walks, but the first rollout of every task is ``odd``."""
    return lambda task, number: odd if number == 0 else walks(task, number)


def test_rows_of_one_rollout_carry_different_advantages_equal_to_assign_credit(make_stage, walks):
    stage = make_stage(walks, credit=CreditConfig.preset("webshop"))
    stage.run_batch(["a", "b"])
    trajectories = [item.trajectory for item in stage.daemon._in_queue_order()]
    batch, _ = stage.batch()
    credit = assign_credit(trajectories, CreditConfig.preset("webshop"))
    scores = step_scores(batch)
    for i, trajectory in enumerate(trajectories):
        expected = credit.advantages(i).astype(np.float32).tolist()
        assert [scores[trajectory.rollout_id][step] for step in range(len(expected))] == expected
    assert all(len({*steps.values()}) > 1 for steps in scores.values())
    assert batch.batch["token_level_scores"].dtype == torch.float32


def test_the_stock_daemon_gives_every_row_of_a_rollout_its_final_reward(make_stage, walks):
    """What this backend is for: the stock daemon throws step credit away."""
    stage = make_stage(walks, daemon_cls=AgentModeDaemon)
    stage.run_batch(["a"])
    batch, _ = stage.batch()
    assert all(len({*steps.values()}) == 1 for steps in step_scores(batch).values())


def test_groups_are_the_drawn_samples_so_one_task_drawn_twice_is_two_groups(make_stage, walks):
    stage = make_stage(walks)
    stage.run_batch(["a", "a"])
    batch, metrics = stage.batch()
    assert metrics["milegpo/groups"] == 2.0
    assert len({*batch.non_tensor_batch["data_id_list"]}) == 2


def test_rows_come_in_queue_order_whatever_finished_first(make_stage, walks):
    stage = make_stage(walks)
    stage.run_batch(["a", "b"])
    batch, _ = stage.batch()
    queued = list(stage.daemon._task_id_to_original_sample)
    assert list(dict.fromkeys(batch.non_tensor_batch["rollout_id_list"])) == queued


@pytest.mark.parametrize(
    ("policy", "rollouts", "skipped"), [("drop", 3.0, 1.0), ("zero", 4.0, 0.0), ("keep", 4.0, 0.0)]
)
def test_a_failed_rollout_is_dropped_counted_as_zero_or_kept(
    make_stage, walk, walks, policy, rollouts, skipped
):
    broken = walk("rrr", reward=1.0, status="failed")
    stage = make_stage(with_one(broken, walks), credit=CreditConfig(on_failure=policy))
    stage.run_batch(["a"])
    batch, metrics = stage.batch()
    assert metrics["milegpo/rollouts"] == rollouts
    assert metrics.get("milegpo/skipped/failed", 0.0) == skipped
    assert metrics["milegpo/flags/failed"] == 1.0
    assert len(step_scores(batch)) == rollouts
    assert metrics["milegpo/success_rate"] == pytest.approx(
        {"drop": 1 / 3, "zero": 1 / 4, "keep": 2 / 4}[policy]
    )


def test_a_missing_reward_is_unknown_not_zero(make_stage, walk, walks):
    stage = make_stage(with_one(walk("rrr", reward=None), walks))
    stage.run_batch(["a"])
    batch, metrics = stage.batch()
    assert metrics["milegpo/skipped/no_reward"] == 1.0
    assert metrics["training/n_rollouts_w_reward"] == 3.0
    assert metrics["training/reward"] == pytest.approx(1 / 3)
    assert len(step_scores(batch)) == 3


def test_an_over_long_prompt_stays_in_the_graph_and_only_its_row_is_skipped(make_stage, episode, turn, walks):
    long = episode(
        [turn("room 0", "right"), turn("room 1" + " and a long corridor" * 9, "right")], reward=1.0
    )
    stage = make_stage(with_one(long, walks))
    stage.run_batch(["a"])
    batch, metrics = stage.batch()
    assert metrics["milegpo/steps_skipped/prompt_too_long"] == 1.0
    assert metrics["milegpo/steps"] == metrics["milegpo/rows"] + 1
    first = stage.daemon._in_queue_order()[0].trajectory.rollout_id
    assert [*step_scores(batch)[first]] == [0]


def test_an_evicted_rollout_is_incomplete_not_failed(make_stage, walk, walks):
    stage = make_stage(with_one(walk("rrr", reward=1.0, evicted=True), walks))
    stage.run_batch(["a"])
    _, metrics = stage.batch()
    assert "milegpo/flags/failed" not in metrics
    assert metrics["milegpo/flags/no_model_call"] == 1.0
    assert metrics["milegpo/rollouts_skipped"] == 1.0
    assert problems_of(stage) == [
        ("rollout", "the platform reports it as succeeded and holds no spans of it")
    ]


def test_a_stale_attempt_is_not_read(make_stage, walk, walks):
    stale = walk("lll", reward=0.0, status="failed")
    stage = make_stage(with_one(walk("rrr", reward=1.0, first_attempt=stale), walks))
    stage.run_batch(["a"])
    _, metrics = stage.batch()
    trajectory = stage.daemon._in_queue_order()[0].trajectory
    assert [step.action.text for step in trajectory.steps] == ["right"] * 3
    assert trajectory.reward == 1.0
    assert metrics["milegpo/stale_attempts"] == 1.0
    assert [kind for kind, _ in problems_of(stage)] == ["attempt"]


def test_a_server_error_without_a_reward_is_a_failure_though_the_rollout_completed(
    make_stage, episode, turn, walks
):
    refused = episode([turn("room 0", "right", status="ERROR")], reward=None)
    stage = make_stage(with_one(refused, walks))
    stage.run_batch(["a"])
    _, metrics = stage.batch()
    assert metrics["milegpo/skipped/failed"] == 1.0
    assert metrics["milegpo/flags/error_status"] == 1.0


def test_steps_without_token_ids_get_credit_and_no_row(make_stage, episode, turn, walks):
    half = episode([turn("room 0", "right", with_ids=False), turn("room 1", "right")], reward=1.0)
    stage = make_stage(with_one(half, walks))
    stage.run_batch(["a"])
    batch, metrics = stage.batch()
    assert metrics["milegpo/steps_skipped/no_token_ids"] == 1.0
    first = stage.daemon._in_queue_order()[0].trajectory.rollout_id
    assert [*step_scores(batch)[first]] == [1]


def test_a_batch_without_rows_says_why(make_stage, episode, turn):
    def script(task: dict[str, Any], number: int) -> Any:
        return episode([turn("room 0", "right", with_ids=False)], reward=float(number))

    stage = make_stage(script)
    stage.run_batch(["a"])
    with pytest.raises(
        TrainingError, match=r"step 7: 0 rows, fewer than one mini-batch of 1 .*4 × step: no token ids"
    ):
        stage.batch(step=7)


def test_a_batch_of_failures_names_the_first_ones(make_stage, walk):
    stage = make_stage(lambda task, number: walk("r", reward=None, status="failed"))
    stage.run_batch(["a"])
    with pytest.raises(
        TrainingError, match=r"no outcomes: .* First of 4 problems: ro-.*: the platform reports it as failed"
    ):
        stage.batch()


def test_groups_of_one_are_a_loud_warning(make_stage, walk, walks, caplog):
    def script(task: dict[str, Any], number: int) -> Any:
        return walks(task, number) if number == 0 else walk("r", reward=None)

    stage = make_stage(script)
    stage.run_batch(["a"])
    with caplog.at_level(logging.WARNING):
        stage.batch()
    assert "1 of 1 groups have one usable rollout and learn nothing" in caplog.text


def test_validation_leaves_unknown_outcomes_out(make_stage, walk):
    outcomes = iter([1.0, None])
    stage = make_stage(lambda task, number: walk("rr", reward=next(outcomes)))
    stage.run_batch(["a", "b"], is_train=False)
    metrics = stage.daemon.get_test_metrics()
    assert metrics["val/reward"] == 0.5
    assert metrics["val/milegpo/outcome_reward"] == 1.0
    assert metrics["val/milegpo/success_rate"] == 1.0


def test_a_dump_holds_what_the_step_was_trained_on(make_stage, walks, tmp_path):
    stage = make_stage(walks, credit=CreditConfig.preset("webshop"), dump_dir=tmp_path)
    stage.run_batch(["a"])
    trajectories = [item.trajectory for item in stage.daemon._in_queue_order()]
    stage.batch(step=12)
    folder = tmp_path / "step_000012"
    assert list(read_trajectories(folder / "trajectories.jsonl", pytest.fail)) == trajectories
    assert CreditConfig.from_file(tmp_path / "credit.yaml") == CreditConfig.preset("webshop")
    steps = sum(len(trajectory.steps) for trajectory in trajectories)
    assert len((folder / "credit.jsonl").read_text(encoding="utf-8").splitlines()) == steps


def test_the_stock_daemon_trains_on_any_instrumentation_with_the_triplet_adapter(make_stage, walks):
    stage = make_stage(walks, daemon_cls=AgentModeDaemon)
    stage.daemon.adapter = TripletAdapter()
    stage.run_batch(["a"])
    batch, metrics = stage.batch()
    assert metrics["training/n_rollouts_w_reward"] == 4
    assert len(batch) == 14


def test_the_batch_is_cleared_with_the_queue(make_stage, walks):
    stage = make_stage(walks)
    stage.run_batch(["a"])
    stage.daemon.clear_data_and_server()
    assert stage.daemon._in_queue_order() == []
