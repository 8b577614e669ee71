"""The truth of the ground-truth benchmark: exact values against hand work and against sampling."""

import numpy as np
import pytest

from benchmarks.ground_truth.exact import (
    dead_ends,
    optimal_action_values,
    optimal_visits,
    policy_values,
    step_advantages,
    success_rate,
)
from benchmarks.ground_truth.mdps import MDP, random_mdp, stack
from benchmarks.ground_truth.policies import logits_of_strength, softmax
from benchmarks.ground_truth.sampling import sample


def corridor(horizon=3):
    """Start 0 -> state 1 -> goal 3; from 0 one may also fall into the trap 2. Action 0 goes on."""
    following = np.array([[1, 2], [3, 1], [2, 2], [3, 3]])[:, :, None]
    mdp = MDP(following, np.ones((4, 2, 1)), np.ones((4, 2), dtype=bool), np.array([0, 0, 0, 1], dtype=bool))
    return stack([mdp], horizon)


def uniform(mdps):
    return softmax(mdps, np.zeros(mdps.legal_MSA.shape))


def test_values_of_a_corridor_are_those_worked_out_by_hand():
    mdps = corridor()
    value = policy_values(mdps, uniform(mdps))
    # From 1 with two steps left: 1 - 1/4; the start goes on half of the time.
    assert value[1, 0, 1] == pytest.approx(0.75)
    assert value[0, 0, 0] == pytest.approx(0.375)
    assert value[0, 0, 2] == 0


def test_advantages_of_a_corridor_are_those_worked_out_by_hand():
    mdps = corridor()
    value = policy_values(mdps, uniform(mdps))
    zeros = np.zeros(2, dtype=int)
    advantage = step_advantages(mdps, value, zeros, zeros, zeros, np.array([0, 1]))
    assert advantage == pytest.approx([0.375, -0.375])


def test_dead_ends_and_milestones_of_a_corridor():
    mdps = corridor()
    optimal = optimal_action_values(mdps)
    assert dead_ends(mdps, optimal)[0].tolist() == [False, False, True, False]
    assert optimal_visits(mdps, optimal)[0] == pytest.approx([1, 1, 0, 1])


def test_two_equally_short_ways_are_each_half_of_the_optimal_visits():
    following = np.array([[1, 2], [3, 3], [3, 3], [3, 3]])[:, :, None]
    diamond = MDP(following, np.ones((4, 2, 1)), np.ones((4, 2), dtype=bool), np.arange(4) == 3)
    mdps = stack([diamond], 4)
    assert optimal_visits(mdps, optimal_action_values(mdps))[0] == pytest.approx([1, 0.5, 0.5, 1])


PARAMETERS = {
    "regions": {
        "regions": 2,
        "states": 12,
        "actions": 3,
        "traps": 2,
        "loop_share": 0.2,
        "trap_share": 0.1,
        "back_share": 0.1,
        "slip": 0.3,
    },
    "layers": {"layers": 3, "width": 3, "actions": 3, "hazard": 0.5, "loop_share": 0.2},
}


@pytest.mark.parametrize("kind", PARAMETERS)
def test_the_exact_success_rate_is_the_one_that_sampling_finds(kind):
    rng = np.random.default_rng(3)
    mdps = stack([random_mdp(kind, rng, **PARAMETERS[kind]) for _ in range(3)], 10)
    policy = softmax(mdps, rng.normal(size=mdps.legal_MSA.shape))
    rollouts = sample(mdps, policy, groups=1, size=8000, rng=rng)
    found = rollouts.success_K.reshape(3, -1).mean(axis=1)
    assert found == pytest.approx(success_rate(mdps, policy), abs=0.025)


def test_the_exact_advantage_is_the_one_that_sampling_finds():
    """Mean outcome after an action at the start minus the mean outcome of all rollouts."""
    rng = np.random.default_rng(5)
    mdps = stack([random_mdp("regions", rng, **PARAMETERS["regions"])], 10)
    policy = softmax(mdps, rng.normal(size=mdps.legal_MSA.shape))
    rollouts = sample(mdps, policy, groups=1, size=40_000, rng=rng)
    first = rollouts.time_X == 0
    actions = rollouts.action_X[first]
    zeros = np.zeros(3, dtype=int)
    exact = step_advantages(mdps, policy_values(mdps, policy), zeros, zeros, zeros, np.arange(3))
    for action in range(3):
        found = rollouts.success_K[actions == action].mean() - rollouts.success_K.mean()
        assert found == pytest.approx(exact[action], abs=0.02)


@pytest.mark.parametrize("success", [0.1, 0.5, 0.8])
def test_policies_have_the_strength_that_is_asked_for(success):
    rng = np.random.default_rng(1)
    parameters = {**PARAMETERS["regions"], "slip": 0.0}
    mdps = stack([random_mdp("regions", rng, **parameters) for _ in range(4)], 12)
    logit = logits_of_strength(mdps, optimal_action_values(mdps), success, rng)
    assert success_rate(mdps, softmax(mdps, logit)) == pytest.approx(success, abs=1e-3)


@pytest.mark.parametrize("kind", PARAMETERS)
def test_random_mdps_are_sound_and_the_same_for_the_same_seed(kind):
    first, again = (random_mdp(kind, np.random.default_rng(7), **PARAMETERS[kind]) for _ in range(2))
    assert np.array_equal(first.next_SAO, again.next_SAO)
    assert first.prob_SAO.sum(axis=2) == pytest.approx(1)
    mdps = stack([first], 30)
    assert optimal_action_values(mdps)[0, 0].max() > 0


def test_padding_changes_no_value():
    rng = np.random.default_rng(2)
    small = random_mdp("regions", rng, **PARAMETERS["regions"])
    large = random_mdp("regions", rng, **{**PARAMETERS["regions"], "states": 20, "actions": 5})
    alone, together = stack([small], 10), stack([small, large], 10)
    assert success_rate(together, uniform(together))[0] == pytest.approx(
        success_rate(alone, uniform(alone))[0]
    )
    assert together.terminal_MS[0, -1]
