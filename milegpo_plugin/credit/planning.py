"""PlanGPO: the returns of MileGPO with values of the recorded MDP in the place of goal distances.

The graph of a group knows where its actions led, and how often. Distance to the goal looks at the best
outcome of an action only, and trusts a way that one rollout found by luck as much as one that never
failed. The value of an action here is the mean over its recorded outcomes, with imagined worthless ones
added to them; a state is worth its best action. Not part of the MileGPO paper.

Axes: ``_S`` steps, ``_N`` nodes, ``_C`` choices (an action in a state), ``_O`` their distinct outcomes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit.advantages import (
    Advantages,
    episode_advantages,
    in_groups_with_success,
    mix,
    normalize,
)
from milegpo_plugin.credit.segments import Segments, ratio
from milegpo_plugin.credit.shaping import Shaping
from milegpo_plugin.groups import Batch, Floats

MOST_SWEEPS: Final = 1000
"""States further from the goal than this get no value."""


def plan_returns(batch: Batch, shaping: Shaping, config: CreditConfig) -> Shaping:
    """r^P = c Q(s, a) in the place of r^G, and r^M = r^P + c lambda (delta+ - delta-)."""
    planned_S = config.return_scale * action_values(batch, config)
    gain_S = config.shaping_weight * (shaping.delta_plus_S - shaping.delta_minus_S)
    return replace(
        shaping, graph_return_S=planned_S, shaped_return_S=planned_S + config.return_scale * gain_S
    )


def action_values(batch: Batch, config: CreditConfig) -> Floats:
    """Q(s, a) = sum over outcomes v of n(s, a, v) V(v) / (n(s, a) + n0), V(s) = gamma_G max_a Q(s, a).

    V(GOAL) = 1. Found by value iteration from below, which floating point ends after some sweeps.
    Without imagined outcomes (n0 = 0) and with one outcome an action this is gamma_G^d(v, GOAL). Shape (S,).
    """
    size, choice_S = len(batch.group_N), batch.known_choice_S
    outcomes = Segments.of(choice_S * size + batch.target_S)
    choice_O, target_O = np.divmod(outcomes.key_Y, size)
    choices = Segments.of_ascending(choice_O)
    steps_C = choices.total(outcomes.size_Y)
    weight_O = outcomes.size_Y / choices.spread(steps_C + config.plan_pseudo_count)
    states = Segments.of(batch.source_S[outcomes.order_X[outcomes.start_Y[choices.start_Y]]])
    goal_N = batch.goal_N.astype(np.float64)
    value_N = goal_N
    for _ in range(MOST_SWEEPS):
        value_C = choices.total(weight_O * value_N[target_O])
        updated_N = goal_N + states.scatter(config.graph_discount * states.largest(value_C), size)
        if np.array_equal(updated_N, value_N):
            break
        value_N = updated_N
    return choices.spread(value_C)[outcomes.segment_X]


def plan_advantages(batch: Batch, shaping: Shaping, config: CreditConfig) -> Advantages:
    """Compare the returns relative to the largest of their state, and fade the rollout's own score.

    * Returns far from the goal are tiny; divided by the largest of their state they count as much as others.
    * Steps that made one choice share the mean of their shaped advantages: credit is for the action, not
      for the outcome it happened to have.
    * A group without a success gets no step credit, see :func:`in_groups_with_success`.
    * The rollout's score counts 1 / (steps of the group at the state): the less, the more there is to compare.
    """
    states, choices = Segments.of(batch.source_S), Segments.of(batch.known_choice_S)
    planned_S = normalize(_over_largest(shaping.graph_return_S, states), states, config.norm)
    own_S = normalize(_over_largest(shaping.shaped_return_S, states), states, config.norm)
    shared_S = choices.spread(choices.total(own_S) / choices.size_Y)
    shaped_S = shared_S * in_groups_with_success(batch)
    episode_S = episode_advantages(batch, config) / states.spread(states.size_Y)
    return mix(planned_S, shaped_S, episode_S, config, config.plan_episode_weight)


def _over_largest(value_S: Floats, states: Segments) -> Floats:
    """Values over the largest magnitude of their state. Shape (S,)."""
    return ratio(value_S, states.spread(states.largest(np.abs(value_S))))
