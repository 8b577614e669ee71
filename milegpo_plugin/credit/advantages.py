"""Returns become advantages: compared where they are comparable (eqs. 21–22).

Axes: ``_G`` groups, ``_K`` rollouts, ``_S`` steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit.residue import RESIDUE
from milegpo_plugin.credit.segments import Segments
from milegpo_plugin.credit.shaping import Shaping
from milegpo_plugin.groups import Batch, Bools, Floats

EPSILON: Final = 1e-6
"""Added to a standard deviation before dividing by it."""


@dataclass(frozen=True, slots=True)
class Advantages:
    """What every step is better or worth than its peers; None where an estimator has no such part."""

    advantage_S: Floats  # (S,)
    step_advantage_S: Floats | None = None  # (S,) the step part, before its weight
    episode_advantage_S: Floats | None = None  # (S,) Norm_q(Z) of the step's rollout
    graph_advantage_S: Floats | None = None  # (S,) Norm(r^G)
    shaped_advantage_S: Floats | None = None  # (S,) Norm(r^M)


def normalize(
    value_X: Floats, segments: Segments, norm: Literal["mean_std", "mean"], *, ddof: int = 1
) -> Floats:
    """(x - mean) / (std + epsilon) inside each segment, or x - mean; a segment of one gives 0.

    Values that differ by no more than rounding are equal: they give exactly 0, whatever their size.
    Shape (X,).
    """
    size_Y, start_Y = segments.size_Y, segments.start_Y
    value = value_X[segments.order_X]
    shifted = value - np.repeat(value[start_Y], size_Y)
    centred = shifted - np.repeat(np.add.reduceat(shifted, start_Y) / size_Y, size_Y)
    tied_Y = np.maximum.reduceat(np.abs(shifted), start_Y) <= RESIDUE * np.abs(value[start_Y])
    centred[np.repeat(tied_Y, size_Y)] = 0.0
    if norm == "mean_std":
        variance_Y = np.add.reduceat(centred**2, start_Y) / np.maximum(size_Y - ddof, 1)
        centred /= np.repeat(np.sqrt(variance_Y) + EPSILON, size_Y)
    result = np.empty(len(value_X))
    result[segments.order_X] = centred
    return result


def step_advantages(batch: Batch, shaping: Shaping, config: CreditConfig) -> Advantages:
    """A_t = w_step [A^G + eta (A^mix - A^G)] + w_episode Norm_q(Z) (eqs. 21–22)."""
    states = Segments.of(batch.source_S)
    graph_S = normalize(shaping.graph_return_S, states, config.norm)
    shaped_S = normalize(shaping.shaped_return_S, states, config.norm)
    if config.require_success:
        shaped_S *= in_groups_with_success(batch)
    return mix(graph_S, shaped_S, episode_advantages(batch, config), config, config.episode_weight)


def mix(
    graph_S: Floats, shaped_S: Floats, episode_S: Floats, config: CreditConfig, episode_weight: float
) -> Advantages:
    """w_step [A^G + eta (A^mix - A^G)] + w_episode A^E, and its parts (eq. 22). All shapes (S,)."""
    mixed_S = graph_S + config.mix_weight * (shaped_S - graph_S)
    return Advantages(
        advantage_S=config.step_weight * mixed_S + episode_weight * episode_S,
        step_advantage_S=mixed_S,
        episode_advantage_S=episode_S,
        graph_advantage_S=graph_S,
        shaped_advantage_S=shaped_S,
    )


def in_groups_with_success(batch: Batch) -> Bools:
    """Whether each step's group has a success. Shape (S,).

    Without one, only traps are left to shape with: what failed most visibly, whether or not it lies on
    the way to the goal. Normalised to unit size, that is a full step in a direction that may be wrong.
    """
    succeeds_G = np.bincount(batch.group_K, weights=batch.success_K) > 0
    return succeeds_G[batch.group_K[batch.rollout_S]]


def episode_advantages(batch: Batch, config: CreditConfig) -> Floats:
    """Norm_q(Z) of every step's rollout: one vote per rollout, or one per step. Shape (S,)."""
    if config.episode_statistics == "row":
        rows = Segments.of_ascending(batch.group_K[batch.rollout_S])
        return normalize(batch.score_K[batch.rollout_S], rows, config.norm)
    return normalize(batch.score_K, Segments.of_ascending(batch.group_K), config.norm)[batch.rollout_S]


def penalize_invalid_actions(advantages: Advantages, batch: Batch, config: CreditConfig) -> Advantages:
    """A_t minus the penalty where the action was invalid; the parts of A_t stay as they are.

    verl-agent takes it off the reward, before advantages are normalised; here its size does not depend on
    how the other steps fared.
    """
    penalty_S = config.invalid_action_penalty * batch.invalid_S
    return replace(advantages, advantage_S=advantages.advantage_S - penalty_S)
