"""The estimators under test: the package's credit engine, and what is tried on top of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.ground_truth.mdps import Floats, MDPs
from benchmarks.ground_truth.params import EstimatorSpec
from benchmarks.ground_truth.sampling import Rollouts, to_batch
from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import Credit, credit_of_batch
from milegpo_plugin.credit.segments import Segments
from milegpo_plugin.groups import Batch


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
        return credit_of_batch(to_batch(rollouts, mdps, self.spec.history), self.config)

    def advantages(self, rollouts: Rollouts, mdps: MDPs) -> Floats:
        """One advantage per step. Shape (X,)."""
        return self.adjusted(self.credit(rollouts, mdps))

    def adjusted(self, credit: Credit) -> Floats:
        """The engine's advantages, or what the spec makes of their parts. Shape (X,)."""
        spec = self.spec
        if spec.episode == "constant" and not spec.average_actions:
            return credit.advantage_S
        step_X = _known(credit.step_advantage_S)
        if spec.average_actions:
            step_X = average_over_actions(credit.batch, step_X)
        weight_X = episode_weights(credit.batch, step_X, spec.episode)
        return step_X + self.config.episode_weight * weight_X * _known(credit.episode_advantage_S)


def _known(part_X: Floats | None) -> Floats:
    if part_X is None:
        raise ValueError("this estimator has no such part: use constant episodes and no action averages")
    return part_X


def average_over_actions(batch: Batch, value_X: Floats) -> Floats:
    """Mean over the steps of the group that took the same action in the same state. Shape (X,).

    Where an action can lead to several states, the average credits the action and not the luck of
    one outcome; where it cannot, nothing changes.
    """
    choices = Segments.of(batch.known_choice_S)
    return choices.spread(choices.total(value_X) / choices.size_Y)


def episode_weights(batch: Batch, step_X: Floats, mode: str) -> Floats:
    """Factor of the episode advantage: 1, 1 / steps of the group at the state, or only without step credit."""
    if mode == "faded":
        states = Segments.of(batch.source_S)
        return 1 / states.spread(states.size_Y)
    return np.where(step_X == 0, 1.0, 0.0) if mode == "fallback" else np.ones(len(step_X))
