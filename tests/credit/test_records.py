"""The lines of credit.jsonl and nodes.jsonl."""

from __future__ import annotations

import json

import pytest

from milegpo_plugin.config import ESTIMATORS, CreditConfig
from milegpo_plugin.credit import assign_credit

STEP_KEYS = [
    "task_id", "rollout_id", "step", "state", "graph_return", "shaped_return", "delta_plus", "delta_minus",
    "graph_advantage", "shaped_advantage", "episode_advantage", "advantage",
]  # fmt: skip
NODE_KEYS = {
    "task_id", "state", "visits", "successes", "goal_distance", "milestone_score", "trap_score",
    "branch_evidence", "progress_evidence", "calibrated_score", "milestone_potential", "trap_potential", "kind",
}  # fmt: skip


@pytest.fixture
def batch(rollout):
    return [
        rollout(["a", "b"], 0.0, task_id="t2", rollout_id="r1", final_state="b"),
        rollout(["a", "b"], 1.0, task_id="t2", rollout_id="r0"),
        rollout(["a", "c"], 0.0, task_id="t1", rollout_id="r0"),
        rollout(["a"], task_id="t1", rollout_id="r1"),
        rollout(["b", "a", "b"], 0.0, task_id="t2", rollout_id="r2", final_state="lost"),
    ]


def test_step_lines_have_the_contract_keys_in_canonical_order(batch):
    lines = list(assign_credit(batch).step_records())
    assert [(line["task_id"], line["rollout_id"], line["step"], line["state"]) for line in lines] == [
        ("t1", "r0", 0, "a"),
        ("t1", "r0", 1, "c"),
        ("t1", "r1", 0, "a"),
        ("t2", "r0", 0, "a"),
        ("t2", "r0", 1, "b"),
        ("t2", "r1", 0, "a"),
        ("t2", "r1", 1, "b"),
        ("t2", "r2", 0, "b"),
        ("t2", "r2", 1, "a"),
        ("t2", "r2", 2, "b"),
    ]
    assert all(list(line) == STEP_KEYS for line in lines)
    assert json.loads(json.dumps(lines)) == lines


def test_steps_of_a_skipped_rollout_are_there_with_null_values(batch):
    skipped = next(line for line in assign_credit(batch).step_records() if line["rollout_id"] == "r1")
    assert skipped["state"] == "a"
    assert all(skipped[key] is None for key in STEP_KEYS[4:])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fields_that_an_estimator_does_not_define_are_null(batch, estimator):
    defined = {
        "milegpo": set(STEP_KEYS[4:]),
        "graphgpo": set(STEP_KEYS[4:]),
        "plangpo": set(STEP_KEYS[4:]),
        "gigpo": {"episode_advantage", "advantage"},
        "hgpo": {"advantage"},
        "grpo": {"episode_advantage", "advantage"},
        "rloo": {"episode_advantage", "advantage"},
    }
    line = next(assign_credit(batch, CreditConfig(estimator=estimator)).step_records())
    assert {key for key in STEP_KEYS[4:] if line[key] is not None} == defined[estimator]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_advantages_of_a_rollout_are_those_of_its_lines(batch, estimator):
    credit = assign_credit(batch, CreditConfig(estimator=estimator))
    for index, trajectory in enumerate(batch):
        own = (trajectory.task_id, trajectory.rollout_id)
        lines = [x["advantage"] for x in credit.step_records() if (x["task_id"], x["rollout_id"]) == own]
        values = credit.advantages(index)
        assert lines == ([None] * len(trajectory.steps) if values is None else values.tolist())


def test_node_lines_have_the_contract_keys_and_plain_values(batch):
    lines = list(assign_credit(batch).node_records())
    assert all(set(line) >= NODE_KEYS for line in lines)
    assert json.loads(json.dumps(lines)) == lines
    nodes = {(line["task_id"], line["state"]): line for line in lines}
    assert nodes["t1", "a"]["goal_distance"] is None
    assert nodes["t2", "a"]["goal_distance"] == 2
    assert nodes["t2", "<goal>"]["goal_distance"] == 0
    assert (nodes["t2", "b"]["visits"], nodes["t2", "b"]["successes"]) == (3, 1)


def test_a_node_is_a_milestone_when_its_weight_is_positive(batch):
    kinds = {(x["task_id"], x["state"]): x["kind"] for x in assign_credit(batch).node_records()}
    assert kinds["t2", "<goal>"] == "goal"
    assert kinds["t1", "<end>"] == "end"
    assert kinds["t2", "b"] == "milestone"
    assert kinds["t2", "lost"] == "state"
    strict = {x["state"]: x for x in assign_credit(batch).node_records() if x["task_id"] == "t2"}
    assert strict["a"]["milestone_score"] is not None
    assert (strict["a"]["calibrated_score"] > 0) == (strict["a"]["kind"] == "milestone")


def test_a_trap_has_a_score_and_a_milestone_has_none(rollout):
    batch = [rollout(["a", "pit", "pit"], 0.0, final_state="pit", rollout_id=f"r{n}") for n in range(2)]
    batch += [rollout(["a"], 1.0, rollout_id="won")]
    nodes = {x["state"]: x for x in assign_credit(batch).node_records()}
    # lift 1 - 2/3, loops 2 of 1 visit: 1/3 + 0.25 * 1 * 2
    assert nodes["pit"]["kind"] == "trap"
    assert nodes["pit"]["trap_score"] == pytest.approx(1 / 3 + 0.5)
    assert nodes["a"]["trap_score"] is None
    assert nodes["pit"]["milestone_score"] is None
    assert nodes["pit"]["calibrated_score"] is None
