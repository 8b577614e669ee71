"""The benchmark's short cut to the credit engine, what it tries on top, and how it measures."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from benchmarks.ground_truth.estimators import Estimator, average_over_actions
from benchmarks.ground_truth.learning import policy_gradient, scale_free
from benchmarks.ground_truth.mdps import random_mdp, stack
from benchmarks.ground_truth.measure import Truth, rank_correlation, sign_agreement
from benchmarks.ground_truth.params import EXACT, EstimatorSpec, read_params
from benchmarks.ground_truth.policies import softmax
from benchmarks.ground_truth.sampling import sample, to_batch
from milegpo_plugin import CreditConfig, Trajectory, assign_credit

SHAPE = {"actions": 3, "traps": 2, "loop_share": 0.2, "trap_share": 0.05, "back_share": 0.1}


@pytest.fixture(scope="module")
def mdps():
    rng = np.random.default_rng(0)
    return stack([random_mdp("regions", rng, regions=2, states=10, slip=0.2, **SHAPE) for _ in range(3)], 12)


@pytest.fixture(scope="module")
def policy(mdps):
    return softmax(mdps, np.random.default_rng(1).normal(size=mdps.legal_MSA.shape))


@pytest.fixture(scope="module")
def rollouts(mdps, policy):
    return sample(mdps, policy, groups=2, size=6, rng=np.random.default_rng(2))


def as_trajectories(rollouts, goal):
    """The same rollouts as a user would bring them, with zero-padded ids so that order is kept."""
    for index in range(len(rollouts.mdp_K)):
        steps = slice(rollouts.offset_K[index], rollouts.offset_K[index + 1])
        last = rollouts.target_X[steps][-1]
        yield Trajectory(
            task_id=f"{rollouts.group_K[index]:03d}",
            rollout_id=f"{index:04d}",
            reward=float(last == goal),
            final_state=str(last),
            steps=[
                {"state": str(state), "action": {"text": str(action)}}
                for state, action in zip(rollouts.state_X[steps], rollouts.action_X[steps], strict=True)
            ],
        )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"stage": "rcs", "eta": 1},
        {"estimator": "gigpo"},
        {"estimator": "grpo"},
        {"estimator": "hgpo"},
        {"estimator": "plangpo"},
    ],
)
def test_the_short_cut_gives_what_the_public_call_gives(mdps, rollouts, settings):
    fast = Estimator.of(EstimatorSpec(settings=settings)).advantages(rollouts, mdps)
    credit = assign_credit([*as_trajectories(rollouts, mdps.goal)], CreditConfig.load(settings))
    slow = np.concatenate([credit.advantages(index) for index in range(len(rollouts.mdp_K))])
    assert fast == pytest.approx(slow, abs=1e-9)


def test_history_states_are_the_engines_history_states(mdps, rollouts):
    fast = Estimator.of(EstimatorSpec(history=2)).advantages(rollouts, mdps)
    config = CreditConfig.load({"states": {"history": 2}})
    credit = assign_credit([*as_trajectories(rollouts, mdps.goal)], config)
    slow = np.concatenate([credit.advantages(index) for index in range(len(rollouts.mdp_K))])
    assert fast == pytest.approx(slow, abs=1e-9)


def test_averaging_gives_equal_credit_to_equal_choices_and_keeps_the_mean(mdps, rollouts):
    batch = to_batch(rollouts, mdps)
    value = np.random.default_rng(4).normal(size=len(rollouts.state_X))
    averaged = average_over_actions(batch, value)
    choice = batch.source_S * 3 + rollouts.action_X
    for key in np.unique(choice):
        assert np.ptp(averaged[choice == key]) == pytest.approx(0, abs=1e-12)
        assert averaged[choice == key].mean() == pytest.approx(value[choice == key].mean())


def test_averaging_changes_nothing_where_an_action_has_one_outcome():
    rng = np.random.default_rng(0)
    mdps = stack([random_mdp("regions", rng, regions=2, states=10, slip=0.0, **SHAPE)], 12)
    rollouts = sample(mdps, softmax(mdps, np.zeros(mdps.legal_MSA.shape)), 2, 8, rng)
    plain = Estimator.of(EstimatorSpec()).advantages(rollouts, mdps)
    averaged = Estimator.of(EstimatorSpec(average_actions=True)).advantages(rollouts, mdps)
    assert averaged == pytest.approx(plain, abs=1e-9)


def test_a_faded_episode_weight_is_one_over_the_steps_at_the_state(mdps, rollouts):
    plain = Estimator.of(EstimatorSpec(settings={"w_episode": 0}))
    faded = Estimator.of(EstimatorSpec(episode="faded"))
    credit = faded.credit(rollouts, mdps)
    _, place, count = np.unique(credit.batch.source_S, return_inverse=True, return_counts=True)
    expected = plain.advantages(rollouts, mdps) + credit.episode_advantage_S / count[place]
    assert faded.advantages(rollouts, mdps) == pytest.approx(expected)


def test_every_listed_estimator_gives_finite_advantages(mdps, rollouts):
    params = read_params()
    for name, spec in params.estimators.items():
        advantage = Estimator.of(spec).advantages(rollouts, mdps)
        assert np.isfinite(advantage).all(), name
    assert set(params.robustness) <= {*params.estimators, EXACT}


def test_the_truth_agrees_with_itself_and_its_opposite_does_not(mdps, rollouts):
    truth = Truth(rollouts, np.random.default_rng(5).normal(size=len(rollouts.state_X)), len(mdps))
    assert sign_agreement(truth, 3 * truth.advantage_X) == pytest.approx(1)
    assert sign_agreement(truth, -truth.advantage_X) == pytest.approx(0)
    assert sign_agreement(truth, 0 * truth.advantage_X) == pytest.approx(0.5)
    assert rank_correlation(truth, truth.advantage_X**3) == pytest.approx(1)
    assert rank_correlation(truth, -truth.advantage_X) == pytest.approx(-1)
    assert rank_correlation(truth, 0 * truth.advantage_X) == pytest.approx(0)


def test_rank_correlation_is_spearmans(mdps, rollouts):
    rng = np.random.default_rng(6)
    truth = Truth(rollouts, rng.integers(4, size=len(rollouts.state_X)).astype(float), len(mdps))
    guess = rng.integers(4, size=len(rollouts.state_X)).astype(float)
    state = rollouts.group_K[rollouts.rollout_X] * 100 + rollouts.state_X
    by_mdp = [[], [], []]
    for key in np.unique(state):
        here = state == key
        if np.ptp(truth.advantage_X[here]) > 0:
            value = spearmanr(truth.advantage_X[here], guess[here])[0] if np.ptp(guess[here]) > 0 else 0.0
            by_mdp[rollouts.mdp_X[here][0]].append(value)
    assert rank_correlation(truth, guess) == pytest.approx([np.mean(values) for values in by_mdp])


def test_a_scale_free_advantage_does_not_depend_on_its_size():
    advantage, mdp = np.array([1.0, -2.0, 0.5, 100.0, 0.0]), np.array([0, 0, 0, 1, 2])
    scaled = scale_free(advantage, mdp, 3, clip=3.0)
    assert scaled == pytest.approx(scale_free(7 * advantage, mdp, 3, clip=3.0))
    assert np.sqrt((scaled[:3] ** 2).mean()) == pytest.approx(1)
    assert scaled[4] == 0
    assert scale_free(np.array([0.0] * 99 + [1.0]), np.zeros(100, dtype=int), 1, clip=3.0).max() == 3


def test_the_policy_gradient_is_the_gradient_of_the_weighted_log_likelihood(mdps, policy, rollouts):
    rng = np.random.default_rng(8)
    advantage = rng.normal(size=len(rollouts.state_X))
    logit = np.log(policy)
    cell = (rollouts.mdp_X, rollouts.state_X, rollouts.action_X)

    def objective(change):
        return (advantage * np.log(softmax(mdps, logit + change)[cell])).sum()

    gradient = policy_gradient(rollouts, policy, advantage)
    direction = rng.normal(size=policy.shape)
    slope = (objective(1e-6 * direction) - objective(-1e-6 * direction)) / 2e-6
    assert (gradient * direction).sum() == pytest.approx(slope, rel=1e-5)
