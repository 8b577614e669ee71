"""Which rollouts are compared, what they score, and what is said about the others."""

from __future__ import annotations

import math

import pytest

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit
from milegpo_plugin.errors import CreditError
from milegpo_plugin.types import Step, Trajectory


def reasons(credit):
    return [(item.kind, item.id, item.reason) for item in credit.skipped]


def scores(trajectories, **settings):
    return assign_credit(trajectories, CreditConfig(**settings)).batch.score_K.tolist()


def test_rollouts_of_one_task_are_a_group_and_its_states_its_own(rollout):
    """Two tasks with the same main menu do not meet there."""
    batch = [
        rollout(["main menu"], 1.0, task_id="t1", rollout_id="r0"),
        rollout(["main menu"], 0.0, task_id="t2", rollout_id="r1"),
    ]
    credit = assign_credit(batch)
    assert credit.batch.task_ids == ("t1", "t2")
    assert [node["task_id"] for node in credit.node_records() if node["state"] == "main menu"] == ["t1", "t2"]
    assert credit.advantage_S.tolist() == [0.0, 0.0]


def test_a_group_of_one_gets_zero_not_its_raw_reward(rollout):
    credit = assign_credit([rollout(["a", "b"], 5.0)], CreditConfig(estimator="grpo"))
    assert credit.advantage_S.tolist() == [0.0, 0.0]
    assert credit.metrics()["groups_of_one"] == 1.0


def test_a_rollout_without_outcome_is_left_out_and_named(rollout):
    credit = assign_credit([rollout(["a"], 1.0, rollout_id="known"), rollout(["a"], rollout_id="unknown")])
    assert reasons(credit) == [("rollout", "unknown", "no reward")]
    assert credit.advantages(0) is not None
    assert credit.advantages(1) is None


def test_a_rollout_without_steps_is_left_out_and_named(rollout):
    credit = assign_credit([rollout(["a"], 1.0, rollout_id="some"), rollout([], 1.0, rollout_id="none")])
    assert reasons(credit) == [("rollout", "none", "no steps")]


def test_a_success_flag_alone_is_an_outcome(rollout):
    batch = [rollout(["a"], success=True, rollout_id="r0"), rollout(["a"], success=False, rollout_id="r1")]
    assert scores(batch) == [1.0, 0.0]


def test_a_given_success_flag_overrules_the_threshold(rollout):
    batch = [
        rollout(["a"], 0.4, success=True, rollout_id="r0"),
        rollout(["a"], 0.9, success=False, rollout_id="r1"),
        rollout(["a"], 0.6, rollout_id="r2"),
        rollout(["a"], 0.5, rollout_id="r3"),
    ]
    credit = assign_credit(batch, CreditConfig(success_threshold=0.5))
    assert credit.batch.success_K.tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("policy", "used", "score", "success"),
    [("drop", 1, None, None), ("zero", 2, 0.0, False), ("keep", 2, 0.7, True)],
)
def test_a_broken_rollout_is_dropped_counted_as_zero_or_kept(rollout, policy, used, score, success):
    broken = rollout(["a", "b"], 0.7, step_rewards=[0.2, None], flags=["failed"], rollout_id="broken")
    broken = broken.model_copy(
        update={"steps": [step.model_copy(update={"reward": None}) for step in broken.steps]}
    )
    credit = assign_credit([broken, rollout(["a"], 1.0, rollout_id="fine")], CreditConfig(on_failure=policy))
    assert len(credit.batch.input_K) == used
    if policy == "drop":
        assert reasons(credit) == [("rollout", "broken", "failed")]
        assert credit.metrics()["skipped/failed"] == 1.0
    else:
        assert credit.batch.score_K[0] == score
        assert credit.batch.success_K[0] == success


def test_a_broken_rollout_without_reward_can_count_as_zero(rollout):
    broken = rollout(["a"], flags=["failed"], rollout_id="broken")
    batch = [broken, rollout(["a"], 1.0, rollout_id="fine")]
    assert scores(batch, on_failure="zero") == [0.0, 1.0]
    assert reasons(assign_credit(batch, CreditConfig(on_failure="keep"))) == [
        ("rollout", "broken", "no reward")
    ]


def test_the_last_attempt_that_did_not_fail_counts(rollout):
    batch = [
        rollout(["a"], 0.1, attempt_id="attempt-9"),
        rollout(["a"], 0.2, attempt_id="attempt-10"),
        rollout(["a"], 0.3, attempt_id="attempt-11", flags=["failed"]),
    ]
    credit = assign_credit(batch)
    assert credit.batch.score_K.tolist() == [0.2]
    assert [credit.advantages(index) is None for index in range(3)] == [True, False, True]
    assert reasons(credit) == [("rollout", "r0", "stale attempt")] * 2


def test_when_all_attempts_failed_the_last_one_stands_for_them(rollout):
    batch = [
        rollout(["a"], 0.1, attempt_id="1", flags=["failed"]),
        rollout(["a"], 0.2, attempt_id="2", flags=["failed"]),
        rollout(["a"], 1.0, rollout_id="other"),
    ]
    assert scores(batch, on_failure="keep") == [1.0, 0.2]
    assert {reason for _, _, reason in reasons(assign_credit(batch))} == {"stale attempt", "failed"}


@pytest.mark.parametrize("attempt", [None, "1"])
def test_two_trajectories_with_the_same_ids_are_refused(rollout, attempt):
    twins = [rollout(["a"], 1.0, attempt_id=attempt), rollout(["b"], 0.0, attempt_id=attempt)]
    with pytest.raises(CreditError, match="'r0' of task 'task': 2 trajectories have these ids"):
        assign_credit(twins)


def test_the_same_rollout_id_in_two_tasks_is_two_rollouts(rollout):
    batch = [rollout(["a"], 1.0, task_id="t1"), rollout(["a"], 0.0, task_id="t2")]
    assert len(assign_credit(batch).batch.input_K) == 2


def test_without_any_outcome_the_error_says_what_to_pass(rollout):
    with pytest.raises(
        CreditError, match=r"no outcomes: none of the 2 rollouts .*pass --rewards FILE\.jsonl"
    ):
        assign_credit([rollout(["a"]), rollout(["b"], rollout_id="r1")])


def test_an_empty_input_is_refused():
    with pytest.raises(CreditError, match="no rollouts"):
        assign_credit([])


def test_when_every_rollout_is_left_out_the_reasons_are_counted(rollout):
    batch = [
        rollout(["a"], 1.0, flags=["failed"], rollout_id="r0"),
        rollout(["a"], 0.0, flags=["failed"], rollout_id="r1"),
        rollout(["a"], rollout_id="r2"),
    ]
    with pytest.raises(CreditError, match=r"no rollout can be used \(failed: 2, no reward: 1\)"):
        assign_credit(batch)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_not_finite_is_refused_and_named(rollout, value):
    with pytest.raises(CreditError, match=f"rollout 'bad' of task 'task': reward must be .* got {value}"):
        assign_credit([rollout(["a"], 1.0), rollout(["a"], value, rollout_id="bad")])
    with pytest.raises(CreditError, match=f"rollout 'bad' .* a step reward must be .* got {value}"):
        assign_credit([rollout(["a"], 1.0, step_rewards=[value], rollout_id="bad")])


@pytest.mark.parametrize(
    ("step_rewards", "reward", "score"),
    [
        pytest.param([None, -0.1, -0.1], 1.0, 0.8, id="penalties_add_to_the_outcome"),
        pytest.param([None, 0.2, None], 1.0, 1.2, id="a_step_reward_adds_to_the_outcome"),
        pytest.param([0.2, None, 1.0], 1.0, 1.2, id="the_last_step_reward_is_the_outcome"),
        pytest.param([0.0, 0.0, 1.0], 1.0, 1.0, id="step_rewards_that_sum_to_the_outcome"),
        pytest.param([-0.1, -0.1, 1.0], 0.8, 0.8, id="dense_rewards_that_sum_to_the_outcome"),
        pytest.param([1.0, 1.0, 1.0], 1.0, 1.0, id="a_terminal_reward_copied_onto_every_step"),
        pytest.param([None, None, None], 1.0, 1.0, id="outcome_only"),
        pytest.param([0.5, None, -0.5], 0.0, 0.0, id="step_rewards_that_cancel"),
    ],
)
def test_every_reward_counts_once(rollout, step_rewards, reward, score):
    batch = [rollout(["a", "b", "c"], reward, step_rewards=step_rewards)]
    credit = assign_credit(batch, CreditConfig(estimator="gigpo"))
    assert credit.batch.score_K.tolist() == pytest.approx([score])
    assert credit.batch.reward_S.sum() == pytest.approx(score)


def test_a_group_decides_together_whether_step_rewards_sum_to_the_outcome(rollout):
    """Two subgoals of 0.5 and a success of 1 must not score less than one subgoal and a success."""
    batch = [
        rollout(["a", "b"], 1.0, step_rewards=[0.5, 0.5], rollout_id="r0"),
        rollout(["a", "b"], 1.0, step_rewards=[0.5, None], rollout_id="r1"),
    ]
    assert scores(batch) == [2.0, 1.5]


def test_a_copied_outcome_is_mentioned(rollout):
    credit = assign_credit([rollout(["a", "b"], 1.0, step_rewards=[1.0, 1.0])])
    assert reasons(credit) == [("step rewards", "r0", "outcome copied onto every step, counted once")]
    assert credit.metrics()["rollouts_skipped"] == 0.0


def test_states_are_computed_from_observations_when_they_are_not_given():
    def step(text):
        return Step(observation=[{"role": "tool", "content": text}])

    batch = [
        Trajectory(task_id="t", rollout_id="r0", reward=1.0, steps=[step("hall"), step("  kitchen ")]),
        Trajectory(
            task_id="t", rollout_id="r1", reward=0.0, steps=[step("hall")], final_observation="kitchen"
        ),
        Trajectory(task_id="t", rollout_id="r2", reward=0.0, steps=[Step(), step("héllo 世界 🗝")]),
    ]
    records = list(assign_credit(batch).node_records())
    visits = {
        record["state"]: record["visits"] for record in records if record["kind"] not in ("goal", "end")
    }
    assert visits["hall"] == 2
    assert visits["kitchen"] == 2
    assert visits["héllo 世界 🗝"] == 1
    assert len(visits) == 4


def test_a_state_named_like_the_goal_is_an_ordinary_state(rollout):
    batch = [rollout(["<goal>", "<end>"], 1.0, rollout_id="r0"), rollout(["<goal>"], 0.0, rollout_id="r1")]
    kinds = [(node["state"], node["kind"]) for node in assign_credit(batch).node_records()]
    assert ("<goal>", "goal") in kinds
    assert ("<end>", "end") in kinds
    assert sum(state == "<goal>" for state, _ in kinds) == 2


def test_a_state_function_of_the_caller_is_used(rollout):
    from milegpo_plugin.states import StateKeys

    def first_letters(trajectories, config):
        return StateKeys(
            [[step.state[0] for step in item.steps] for item in trajectories], [None] * len(trajectories)
        )

    credit = assign_credit([rollout(["apple", "avocado"], 1.0)], state_keys=first_letters)
    assert [record["state"] for record in credit.step_records()] == ["a", "a"]
