"""The estimators under test: the package's credit engine, and what is tried on top of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.ground_truth.mdps import Bools, Floats, Ints, MDPs
from benchmarks.ground_truth.params import EstimatorSpec
from benchmarks.ground_truth.sampling import Rollouts, to_batch
from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit.advantages import normalize
from milegpo_plugin.credit.calibration import calibrate_scores
from milegpo_plugin.credit.estimators import estimate_advantages
from milegpo_plugin.credit.graph import build_state_graph
from milegpo_plugin.credit.milestones import score_candidates
from milegpo_plugin.credit.result import Credit, collect_credit
from milegpo_plugin.credit.segments import Segments
from milegpo_plugin.credit.shaping import shape_returns
from milegpo_plugin.credit.uncertainty import success_intervals
from milegpo_plugin.groups import Batch

PLAN_DISCOUNT = 0.5
PSEUDO_COUNT = 1.0
_PLAN_SWEEPS = 60


@dataclass(frozen=True, slots=True)
class Estimator:
    """One way to turn rollouts into advantages."""

    spec: EstimatorSpec
    config: CreditConfig

    @classmethod
    def of(cls, spec: EstimatorSpec) -> Estimator:
        """Read the settings once."""
        return cls(spec, CreditConfig.preset(spec.preset, **spec.settings))

    def credit(self, rollouts: Rollouts, mdps: MDPs) -> Credit:
        """The engine's result."""
        return credit_of(to_batch(rollouts, mdps, self.spec.history), self.config)

    def advantages(self, rollouts: Rollouts, mdps: MDPs) -> Floats:
        """One advantage per step. Shape (X,)."""
        return self.adjusted(self.credit(rollouts, mdps), rollouts.action_X)

    def adjusted(self, credit: Credit, action_X: Ints) -> Floats:
        """The engine's advantages, or what the spec makes of their parts. Shape (X,)."""
        spec = self.spec
        if spec.episode == "constant" and not (spec.average_actions or spec.needs_success):
            return credit.advantage_S
        step_X = _known(credit.step_advantage_S)
        if spec.planned:
            step_X = step_X - _known(credit.graph_advantage_S) + planned_advantages(credit, action_X)
        if spec.average_actions:
            step_X = average_over_actions(credit.batch, step_X, action_X)
        if spec.needs_success:
            step_X = step_X * in_groups_with_success(credit)
        weight_X = episode_weights(credit.batch, step_X, spec.episode)
        return step_X + self.config.episode_weight * weight_X * _known(credit.episode_advantage_S)


def _known(part_X: Floats | None) -> Floats:
    if part_X is None:
        raise ValueError("this estimator has no such part: use constant episodes and no action averages")
    return part_X


def credit_of(batch: Batch, config: CreditConfig) -> Credit:
    """The stages of ``milegpo_plugin.assign_credit``, from arrays."""
    graph = build_state_graph(batch)
    intervals = success_intervals(graph, config.confidence)
    candidates = score_candidates(graph, config)
    calibration = calibrate_scores(graph, candidates, intervals, config)
    shaping = shape_returns(graph, candidates, calibration, intervals, config)
    advantages = estimate_advantages(batch, shaping, config)
    return collect_credit(config, batch, graph, intervals, candidates, calibration, shaping, advantages)


def average_over_actions(batch: Batch, value_X: Floats, action_X: Ints) -> Floats:
    """Mean over the steps of the group that took the same action in the same state. Shape (X,).

    Where an action can lead to several states, the average credits the action and not the luck of
    one outcome; where it cannot, nothing changes.
    """
    choices = _choices(batch, action_X)
    return choices.spread(choices.total(value_X) / choices.size_Y)


def in_groups_with_success(credit: Credit) -> Bools:
    """Whether each step's group has a success. Shape (X,).

    Without one, nothing but traps is left to shape with: what failed most visibly, whether or not
    it lies on the way to the goal. Normalised to unit size, that is a full step in an arbitrary direction.
    """
    batch = credit.batch
    return credit.graph.success_rate_G[batch.group_K[batch.rollout_S]] > 0


def episode_weights(batch: Batch, step_X: Floats, mode: str) -> Floats:
    """Factor of the episode advantage: 1, 1 / steps of the group at the state, or only without step credit."""
    if mode == "faded":
        states = Segments.of(batch.source_S)
        return 1 / states.spread(states.size_Y)
    return np.where(step_X == 0, 1.0, 0.0) if mode == "fallback" else np.ones(len(step_X))


def planned_advantages(credit: Credit, action_X: Ints) -> Floats:
    """Norm of the optimal action values of the empirical MDP, instead of the distance to the goal.

    The value of an action is its mean over recorded outcomes with one more outcome worth 0. Shape (X,).
    """
    batch = credit.batch
    states, choices = Segments.of(batch.source_S), _choices(batch, action_X)
    goal_N = batch.goal_N.astype(np.float64)
    value_N = goal_N
    for _ in range(_PLAN_SWEEPS):
        ahead_Y = choices.total(PLAN_DISCOUNT * value_N[batch.target_S]) / (choices.size_Y + PSEUDO_COUNT)
        action_value_X = choices.spread(ahead_Y)
        updated_N = goal_N + states.scatter(states.largest(action_value_X), len(goal_N))
        if np.abs(updated_N - value_N).max() < 1e-12:
            break
        value_N = updated_N
    return normalize(action_value_X, states, credit.config.norm)


def _choices(batch: Batch, action_X: Ints) -> Segments:
    return Segments.of(batch.source_S * (action_X.max(initial=0) + 1) + action_X)
