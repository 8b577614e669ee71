"""Baselines and normalisation, with values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit


def advantages(trajectories, **settings):
    credit = assign_credit(trajectories, CreditConfig(**settings))
    return [credit.advantages(index) for index in range(len(trajectories))]


def close(values):
    return pytest.approx(values, abs=1e-9)


@pytest.fixture
def group(rollout):
    """Scores 1, 0, 0.5 with 2, 1 and 1 steps."""
    return [
        rollout(["a", "b"], 1.0, rollout_id="r0"),
        rollout(["a"], 0.0, rollout_id="r1"),
        rollout(["c"], 0.5, rollout_id="r2"),
    ]


def test_grpo_gives_every_step_the_normalised_score(group):
    # mean 0.5, sample std 0.5
    first, second, third = advantages(group, estimator="grpo")
    assert first == close([0.5 / 0.500001] * 2)
    assert second == close([-0.5 / 0.500001])
    assert third == close([0.0])


def test_rloo_subtracts_the_mean_of_the_others(group):
    first, second, third = advantages(group, estimator="rloo")
    assert first == close([1.0 - 0.25] * 2)
    assert second == close([0.0 - 0.75])
    assert third == close([0.5 - 0.5])


def test_rloo_is_zero_for_a_group_of_one(rollout):
    assert advantages([rollout(["a"], 3.0)], estimator="rloo")[0] == close([0.0])


def test_gigpo_compares_discounted_returns_at_one_state(group):
    # at a: 0.9 and 0, mean 0.45; b and c are met once
    first, second, third = advantages(
        group, estimator="gigpo", gigpo_discount=0.9, norm="mean", episode_weight=0.0
    )
    assert first == close([0.45, 0.0])
    assert second == close([-0.45])
    assert third == close([0.0])


def test_gigpo_discounts_step_rewards_from_their_own_step(rollout):
    trajectories = [
        rollout(["a", "b", "c"], 1.0, step_rewards=[None, -0.2, None], rollout_id="r0"),
        rollout(["a"], 0.0, rollout_id="r1"),
    ]
    # return at a: 0.5 * (-0.2) + 0.25 * 1 = 0.15
    first, _ = advantages(
        trajectories, estimator="gigpo", gigpo_discount=0.5, norm="mean", episode_weight=0.0
    )
    assert first == close([0.075, 0.0, 0.0])


@pytest.fixture
def nested(rollout):
    """Four meetings in c: three came from b, two of those from a."""
    return [
        rollout(["a", "b", "c"], 1.0, rollout_id="r0"),
        rollout(["a", "b", "c"], 0.0, rollout_id="r1"),
        rollout(["d", "b", "c"], 0.0, rollout_id="r2"),
        rollout(["e", "c"], 0.0, rollout_id="r3"),
    ]


def test_hgpo_averages_nested_groups_by_their_weights(nested):
    # at c, returns 1 0 0 0: level 0 mean 1/4; level 1 (from b) mean 1/3; level 2 (from a, b) mean 1/2
    first, second, third, fourth = advantages(nested, estimator="hgpo", hgpo_history=2, norm="mean")
    assert first[2] == close((1 * 3 / 4 + 2 * 2 / 3 + 3 * 1 / 2) / 6)
    assert second[2] == close((1 * -1 / 4 + 2 * -1 / 3 + 3 * -1 / 2) / 6)
    assert third[2] == close((1 * -1 / 4 + 2 * -1 / 3) / 3)
    assert fourth[1] == close(-1 / 4)


def test_hgpo_weights_follow_alpha(nested):
    first, *_ = advantages(nested, estimator="hgpo", hgpo_history=2, norm="mean", hgpo_alpha=0.0)
    assert first[2] == close((3 / 4 + 2 / 3 + 1 / 2) / 3)


def test_hgpo_uses_the_population_std(nested):
    first, *_ = advantages(nested, estimator="hgpo", hgpo_history=0)
    assert first[2] == close(0.75 / (np.sqrt(3) / 4 + 1e-6))


def test_hgpo_leaves_out_levels_where_the_advantage_is_exactly_zero(rollout):
    trajectories = [
        rollout(["a", "c"], 0.5, rollout_id="r0"),
        rollout(["a", "c"], 0.5, rollout_id="r1"),
        rollout(["b", "c"], 0.0, rollout_id="r2"),
    ]
    # level 0 at c: 0.5 - 1/3; level 1: the two from a are equal, so it does not count
    first, *_ = advantages(trajectories, estimator="hgpo", hgpo_history=1, norm="mean")
    assert first[1] == close(0.5 - 1 / 3)


def test_hgpo_has_an_episode_term_only_when_asked(nested):
    plain = advantages(nested, estimator="hgpo", norm="mean")
    asked = advantages(nested, estimator="hgpo", norm="mean", hgpo_episode_weight=2.0)
    assert asked[0] - plain[0] == close([2 * 0.75] * 3)
    credit = assign_credit(nested, CreditConfig(estimator="hgpo"))
    assert next(credit.step_records())["episode_advantage"] is None


def test_one_rollout_has_one_vote_unless_rows_are_asked_for(rollout):
    nine_turns = rollout([f"s{turn}" for turn in range(9)], 1.0, rollout_id="r0")
    one_turn = rollout(["t"], 0.0, rollout_id="r1")
    by_rollout = advantages([nine_turns, one_turn], estimator="grpo", norm="mean")
    by_row = advantages([nine_turns, one_turn], estimator="grpo", norm="mean", episode_statistics="row")
    assert (by_rollout[0][0], by_rollout[1][0]) == (0.5, -0.5)
    assert (by_row[0][0], by_row[1][0]) == close((0.1, -0.9))


@pytest.mark.parametrize("norm", ["mean", "mean_std"])
@pytest.mark.parametrize("reward", [0.35, 0.1, 1e-9, 1e9, 1e9 + 0.1, -1 / 3])
def test_equal_rewards_give_exactly_zero(rollout, norm, reward):
    group = [rollout(["a", "b"], reward, success=False, rollout_id=f"r{number}") for number in range(8)]
    for estimator in ("grpo", "rloo", "gigpo", "hgpo", "milegpo"):
        for values in advantages(group, estimator=estimator, norm=norm, stage="graph"):
            assert (values == 0.0).all()


@pytest.mark.parametrize("reward", [1.0, 1e9 / 7, 1e-9])
def test_rewards_that_differ_by_rounding_are_equal(rollout, reward):
    summed = [[0.1 * reward, 0.7 * reward], [0.8 * reward, None], [0.5 * reward, 0.3 * reward]]
    group = [
        rollout(["a", "b"], 0.0, step_rewards=rewards, rollout_id=f"r{number}")
        for number, rewards in enumerate(summed)
    ]
    assert len({sum(value or 0.0 for value in rewards) for rewards in summed}) > 1, "no residue to ignore"
    for values in advantages(group, estimator="grpo"):
        assert (values == 0.0).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e9])
def test_the_scale_of_rewards_cancels_under_mean_std(rollout, scale):
    group = [rollout(["a"], scale * number, rollout_id=f"r{number}") for number in range(3)]
    assert advantages(group, estimator="grpo")[2] == pytest.approx([1.0], rel=2e-3)
