"""PlanGPO: values of the recorded MDP, worked out by hand, and the laws that tie them to GraphGPO."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit
from milegpo_plugin.types import Action, Step, Trajectory


def play(rollout_id, reward, *moves, final=None):
    """A rollout from (state, action) pairs."""
    steps = [Step(state=state, action=Action(text=action)) for state, action in moves]
    return Trajectory(task_id="t", rollout_id=rollout_id, reward=reward, final_state=final, steps=steps)


@pytest.fixture
def gamble():
    """At the start, `jump` wins once and falls into the pit once; `walk` goes to the hall, which wins."""
    return [
        play("r0", 1.0, ("start", "jump")),
        play("r1", 0.0, ("start", "jump"), final="pit"),
        play("r2", 1.0, ("start", "walk"), ("hall", "on")),
        play("r3", 1.0, ("start", "walk"), ("hall", "on")),
    ]


def credit_of(batch, **changes):
    settings = {"estimator": "plangpo", "graph_discount": 0.5, "return_scale": 1.0, **changes}
    return assign_credit(batch, CreditConfig(**settings))


def test_the_value_of_an_action_is_the_mean_over_its_outcomes(gamble):
    # jump: (1 + 0) / 2; hall: 2 / 2; walk: 0.5 · 1. Without imagined outcomes.
    returns = credit_of(gamble, plan_pseudo_count=0).graph_return_S
    assert returns == pytest.approx([0.5, 0.5, 0.5, 1.0, 0.5, 1.0])


def test_an_imagined_outcome_makes_a_rare_action_worth_less(gamble):
    # jump: 1 / 3; hall: 2 / 3; walk: 2 · (0.5 · 2/3) / 3.
    returns = credit_of(gamble, plan_pseudo_count=1).graph_return_S
    assert returns == pytest.approx([1 / 3, 1 / 3, 2 / 9, 2 / 3, 2 / 9, 2 / 3])


def test_distance_would_prefer_the_gamble_and_its_lucky_outcome(gamble):
    lucky, unlucky, walk = (
        assign_credit(gamble, CreditConfig(estimator="graphgpo")).graph_return_S[index] for index in (0, 1, 2)
    )
    assert lucky > walk > unlucky


def test_steps_that_made_one_choice_get_one_step_credit(gamble):
    fallen_twice = [*gamble, play("r4", 0.0, ("start", "jump"), final="pit")]
    credit = credit_of(fallen_twice, mix_weight=1.0)
    assert credit.shaped_return_S[0] > credit.shaped_return_S[1]
    assert credit.step_advantage_S[0] == pytest.approx(credit.step_advantage_S[1], abs=1e-12)


def test_the_own_score_fades_with_the_steps_at_the_state(gamble):
    credit = credit_of(gamble, plan_episode_weight=1.0, step_weight=0.0, norm="mean")
    # Scores 1, 0, 1, 1: 0.25 above the mean, or 0.75 below. Four steps at the start, two in the hall.
    assert credit.advantage_S == pytest.approx([0.25 / 4, -0.75 / 4, 0.25 / 4, 0.25 / 2, 0.25 / 4, 0.25 / 2])


@pytest.mark.parametrize(
    "settings", [{"estimator": "plangpo"}, {"estimator": "milegpo", "require_success": True}]
)
def test_a_group_without_a_success_gets_no_step_credit_when_one_is_needed(settings):
    lost = [
        play("r0", 0.0, ("start", "jump"), final="pit"),
        play("r1", 0.0, ("start", "walk"), ("hall", "wait"), ("hall", "wait"), final="hall"),
        play("r2", 0.0, ("start", "jump"), final="pit"),
    ]
    won = [rollout.model_copy(update={"task_id": "u"}) for rollout in lost]
    won[1] = won[1].model_copy(update={"reward": 1.0})
    credit = assign_credit(lost + won, CreditConfig(**settings))
    lost_S = credit.batch.group_K[credit.batch.rollout_S] == 0
    assert not credit.step_advantage_S[lost_S].any()
    assert credit.step_advantage_S[~lost_S].any()
    assert assign_credit(lost, CreditConfig()).step_advantage_S.any()


def test_far_from_the_goal_step_credit_is_as_strong_as_near_it():
    far = [f"s{number}" for number in range(12)]
    good = play("r0", 1.0, *((state, "on") for state in far))
    bad = play("r1", 0.0, ("s0", "wait"), final="s0")
    first = {
        name: assign_credit([good, bad], CreditConfig(estimator=name, mix_weight=0.0)).step_advantage_S[0]
        for name in ("graphgpo", "plangpo")
    }
    assert first["graphgpo"] < 0.1  # 10 · 0.2^11 is less than the epsilon beside the standard deviation
    assert first["plangpo"] == pytest.approx(np.sqrt(0.5), rel=1e-4)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_without_imagined_outcomes_and_with_one_outcome_an_action_it_is_graphgpo(
    data, batches, settings_of_credit
):
    """Unknown actions are told apart by where they led, so each has one outcome."""
    batch = data.draw(batches())
    config = data.draw(settings_of_credit(estimator="plangpo", plan_pseudo_count=0.0))
    graphgpo = config.model_copy(update={"estimator": "graphgpo"})
    np.testing.assert_allclose(
        assign_credit(batch, config).graph_return_S,
        assign_credit(batch, graphgpo).graph_return_S,
        rtol=1e-12,
        atol=0,
    )


@settings(max_examples=40, deadline=None)
@given(data=st.data(), count=st.sampled_from([0.0, 0.5, 1.0]))
def test_a_value_never_exceeds_that_of_the_best_outcome(data, batches, settings_of_credit, count):
    batch = data.draw(batches())
    config = data.draw(settings_of_credit(estimator="plangpo", plan_pseudo_count=count))
    graphgpo = assign_credit(batch, config.model_copy(update={"estimator": "graphgpo"}))
    credit = assign_credit(batch, config)
    assert (credit.graph_return_S >= 0).all()
    assert (credit.graph_return_S <= graphgpo.graph_return_S * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ({"text": "go  north"}, {"text": "go north\n"}, True),
        ({"text": "go north"}, {"text": "go south"}, False),
        ({"text": "hm <action>go</action>"}, {"text": "ah <action> go </action>"}, True),
        (
            {"tool_calls": [{"id": "1", "name": "f", "arguments": {"a": 1, "b": 2}}]},
            {"tool_calls": [{"id": "2", "name": "f", "arguments": {"b": 2, "a": 1}}]},
            True,
        ),
        (
            {"text": "x", "tool_calls": [{"name": "f", "arguments": {"a": 1}}]},
            {"text": "x", "tool_calls": [{"name": "f", "arguments": {"a": 2}}]},
            False,
        ),
    ],
)
def test_actions_are_the_same_by_their_calls_or_their_text(first, second, same):
    batch = [
        Trajectory(
            task_id="t",
            rollout_id=f"r{number}",
            reward=float(number),
            steps=[Step(state="s", action=Action.model_validate(action))],
        )
        for number, action in enumerate((first, second))
    ]
    choice = credit_of(batch).batch.choice_S
    assert bool(choice[0] == choice[1]) == same


def test_a_pattern_of_ones_own_picks_the_action():
    batch = [
        play("r0", 1.0, ("s", "Thought: left?\nAction: go[left]")),
        play("r1", 0.0, ("s", "Thought: why not\nAction: go[left]"), final="s"),
    ]
    states = {"action_pattern": r"Action: (\w+\[.*?\])"}
    assert np.ptp(credit_of(batch, states=states).batch.choice_S) == 0
    assert np.ptp(credit_of(batch).batch.choice_S) == 1
