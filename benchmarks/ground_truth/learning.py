"""Tabular policy gradient with a given estimator, on all MDPs of a family at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from benchmarks.ground_truth.exact import success_rate
from benchmarks.ground_truth.mdps import Floats, Ints, MDPs
from benchmarks.ground_truth.policies import softmax
from benchmarks.ground_truth.sampling import Rollouts, sample

AdvantageFunction: TypeAlias = Callable[[Rollouts, MDPs, Floats], Floats]
"""From rollouts, MDPs and the policy that played them to one advantage per step."""


@dataclass(frozen=True, slots=True)
class LearningSettings:
    """How one learns; the same for every estimator."""

    iterations: int = 40
    groups: int = 2
    group_size: int = 8
    learning_rate: float = 0.3
    clip: float = 3.0
    scale_free: bool = True


def learning_curve(
    mdps: MDPs, logit_MSA: Floats, estimate: AdvantageFunction, settings: LearningSettings, seed: int
) -> Floats:
    """Exact success probability before each update and after the last. Shape (iterations + 1, M).

    Each iteration samples ``groups`` groups of every MDP and takes one step up the policy gradient:
    the sum over steps of advantage x grad log pi, divided by the number of rollouts.
    """
    rng = np.random.default_rng(seed)
    logit = logit_MSA.copy()
    policy = softmax(mdps, logit)
    curve = [success_rate(mdps, policy)]
    for _ in range(settings.iterations):
        rollouts = sample(mdps, policy, settings.groups, settings.group_size, rng)
        advantage_X = estimate(rollouts, mdps, policy)
        if settings.scale_free:
            advantage_X = scale_free(advantage_X, rollouts.mdp_X, len(mdps), settings.clip)
        gradient = policy_gradient(rollouts, policy, advantage_X)
        logit += settings.learning_rate / (settings.groups * settings.group_size) * gradient
        policy = softmax(mdps, logit)
        curve.append(success_rate(mdps, policy))
    return np.array(curve)


def scale_free(advantage_X: Floats, mdp_X: Ints, count: int, clip: float) -> Floats:
    """Unit root mean square over the steps of each MDP, then clipped: what adaptive optimisers amount to."""
    steps_M = np.bincount(mdp_X, minlength=count)
    square_M = np.bincount(mdp_X, weights=advantage_X**2, minlength=count)
    scale_M = np.sqrt(square_M / np.maximum(steps_M, 1))
    scale_X = scale_M[mdp_X]
    unit = np.divide(advantage_X, scale_X, out=np.zeros_like(advantage_X), where=scale_X > 0)
    return np.clip(unit, -clip, clip)


def policy_gradient(rollouts: Rollouts, policy_MSA: Floats, advantage_X: Floats) -> Floats:
    """Sum over steps of advantage x (one-hot of the action - policy). Shape (M, S, A)."""
    shape = policy_MSA.shape
    cell_X = np.ravel_multi_index((rollouts.mdp_X, rollouts.state_X, rollouts.action_X), shape)
    taken = np.bincount(cell_X, weights=advantage_X, minlength=policy_MSA.size).reshape(shape)
    return taken - policy_MSA * taken.sum(axis=2, keepdims=True)
