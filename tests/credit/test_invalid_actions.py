"""A step with an invalid action gets its advantage lowered, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from milegpo_plugin.agl.figures import credit_figures
from milegpo_plugin.config import ESTIMATORS, CreditConfig
from milegpo_plugin.credit import assign_credit
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.types import Action, Step, ToolCall, Trajectory

REFUSED = "Nothing happens|not a valid"
ACTION = r"<action>(.*?)</action>"


def step(seen: str, text: str | None = "<action>go</action>", *flags: str, **fields) -> Step:
    """A step that saw a tool result and answered with a text."""
    observation = [{"role": "tool", "content": seen}]
    return Step(observation=observation, action=Action(text=text), flags=list(flags), **fields)


def rollout(number: int, reward: float, *steps: Step, end: str | None = None) -> Trajectory:
    ids = {"task_id": "task", "rollout_id": f"r{number}"}
    return Trajectory(**ids, reward=reward, steps=list(steps), final_observation=end)


def marks(trajectory: Trajectory, **settings) -> list[bool]:
    return assign_credit([trajectory], CreditConfig.load(settings)).batch.invalid_S.tolist()


@pytest.fixture
def batch() -> list[Trajectory]:
    """Two rollouts of one task; the second step of the loser is refused."""
    won = rollout(0, 1.0, step("hall"), step("study"))
    return [won, rollout(1, 0.0, step("hall"), step("study"), step("Nothing happens."), end="The end.")]


@pytest.mark.parametrize("penalty", [0.1, 2.5])
def test_grpo_with_a_penalty_by_hand(batch, penalty):
    """Scores 1 and 0, centred: 0.5 and -0.5; one of three steps of the loser is refused."""
    config = CreditConfig(
        estimator="grpo", norm="mean", invalid_action_penalty=penalty, invalid_action_pattern=REFUSED
    )
    credit = assign_credit(batch, config)
    assert credit.advantages(0).tolist() == [0.5, 0.5]
    assert credit.advantages(1).tolist() == pytest.approx([-0.5, -0.5 - penalty, -0.5], abs=1e-15)
    assert credit.metrics()["invalid_actions"] == pytest.approx(1 / 5)
    assert credit_figures(credit)["milegpo/invalid_actions"] == pytest.approx(1 / 5)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_takes_the_penalty_off_in_the_end_and_keeps_its_parts(batch, estimator):
    settings = {"estimator": estimator, "invalid_action_pattern": REFUSED}
    plain = assign_credit(batch, CreditConfig.load(settings))
    lowered = assign_credit(batch, CreditConfig.load(settings | {"invalid_action_penalty": 0.25}))
    np.testing.assert_allclose(plain.advantage_S - lowered.advantage_S, [0, 0, 0, 0.25, 0], atol=1e-12)
    for part in ("step_advantage_S", "episode_advantage_S", "graph_advantage_S", "shaped_advantage_S"):
        np.testing.assert_array_equal(getattr(plain, part), getattr(lowered, part))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_without_a_penalty_invalid_actions_are_only_counted(batch, estimator):
    plain = assign_credit(batch, CreditConfig(estimator=estimator))
    counted = assign_credit(batch, CreditConfig(estimator=estimator, invalid_action_pattern=REFUSED))
    assert list(plain.step_records()) == list(counted.step_records())
    assert (plain.metrics()["invalid_actions"], counted.metrics()["invalid_actions"]) == (0.0, 0.2)


def test_arguments_that_are_no_object_are_invalid_without_any_setting():
    assert marks(rollout(0, 1.0, step("hall", None, "invalid_arguments"), step("study"))) == [True, False]


@pytest.mark.parametrize(
    ("action", "flags", "invalid"),
    [
        (Action(text="I think. <action>go</action>"), [], False),
        (Action(text="<action>go\nnorth</action>"), [], False),
        (Action(text="I go north."), [], True),
        (Action(text=""), [], True),
        (Action(text=None), [], False),
        (Action(text="I go.", tool_calls=[ToolCall(name="go")]), [], False),
        (Action(text="I go nor"), ["truncated_json"], False),
        (Action(text="[redacted]"), ["redacted_content"], False),
        (Action(text="I go north."), ["no_token_ids"], True),
    ],
)
def test_a_text_without_an_action_is_invalid_if_the_policy_surely_wrote_it_so(action, flags, invalid):
    one = rollout(0, 1.0, Step(state="hall", action=action, flags=flags))
    assert marks(one, states={"action_pattern": ACTION}) == [invalid]
    assert marks(one) == [False]


def test_the_observation_that_follows_judges_the_last_step_by_the_end():
    steps = (step("hall"), step("study"))
    expected = {"That is not a valid move.": True, "You won.": False, None: False}
    for end, invalid in expected.items():
        assert marks(rollout(0, 1.0, *steps, end=end), invalid_action_pattern=REFUSED) == [False, invalid]


def test_given_states_judge_where_no_text_was_recorded():
    one = Trajectory(task_id="task", rollout_id="r", reward=1.0, steps=[Step(state="a"), Step(state="no!")])
    one.final_state = "no! again"
    assert marks(one, invalid_action_pattern="^no!") == [True, True]


def test_what_one_agent_was_told_says_nothing_about_another():
    planner, worker = ({"agent": name} for name in ("planner", "worker"))
    steps = (step("plan", **planner), step("hall", **worker), step("Nothing happens.", **worker))
    assert marks(rollout(0, 1.0, *steps, end="done"), invalid_action_pattern=REFUSED) == [False, True, False]


def test_a_refusal_in_the_history_of_a_prompt_counts_once():
    """One prompt a step shows earlier observations too; the state pattern picks the current one."""
    prompt = "Before: 'Nothing happens.' Your current observation is: {} Your admissible actions are: [go]"
    steps = (
        step("start"),
        step(prompt.format("You are in the hall.")),
        step(prompt.format("Nothing happens.")),
    )
    one = rollout(0, 1.0, *steps)
    assert marks(one, invalid_action_pattern=REFUSED) == [True, True, False]
    settings = {"invalid_action_pattern": REFUSED, "states": {"pattern": "alfworld"}}
    assert marks(one, **settings) == [False, True, False]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"invalid_action_penalty": -0.1},
            "invalid_action_penalty: input should be greater than or equal to 0",
        ),
        ({"invalid_action_penalty": float("inf")}, "invalid_action_penalty: input should be a finite number"),
        ({"invalid_action_pattern": "("}, "invalid_action_pattern: value error, not a regular expression"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(settings, reason):
    with pytest.raises(ConfigError, match=reason):
        CreditConfig.load(settings)
