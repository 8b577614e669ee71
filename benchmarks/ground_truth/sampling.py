"""Rollouts of many MDPs at once, and the batch that the credit engine reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.ground_truth.mdps import START, Bools, Floats, Ints, MDPs
from milegpo_plugin.groups import Batch
from milegpo_plugin.states import StateKeys


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Steps of all rollouts, rollout after rollout, in time order; group after group."""

    mdp_K: Ints  # (K,)
    group_K: Ints  # (K,) sorted
    success_K: Bools  # (K,)
    offset_K: Ints  # (K + 1,) first step of each rollout, and X
    rollout_X: Ints  # (X,)
    time_X: Ints  # (X,)
    state_X: Ints  # (X,)
    action_X: Ints  # (X,)
    target_X: Ints  # (X,) state after the step

    @property
    def mdp_X(self) -> Ints:
        """MDP of each step. Shape (X,)."""
        return self.mdp_K[self.rollout_X]


def sample(mdps: MDPs, policy_MSA: Floats, groups: int, size: int, rng: np.random.Generator) -> Rollouts:
    """``groups`` groups of ``size`` rollouts of every MDP, from the start to an end or the horizon."""
    mdp_K = np.repeat(np.arange(len(mdps)), groups * size)
    count = len(mdp_K)
    cumulative = policy_MSA.cumsum(axis=2)
    path = np.full((mdps.horizon + 1, count), START)
    action = np.zeros((mdps.horizon, count), dtype=np.int64)
    for time in range(mdps.horizon):
        here = path[time]
        action[time] = _draw(cumulative[mdp_K, here], rng)
        outcome = _draw(mdps.prob_MSAO[mdp_K, here, action[time]].cumsum(axis=1), rng)
        following = mdps.next_MSAO[mdp_K, here, action[time], outcome]
        path[time + 1] = np.where(mdps.terminal_MS[mdp_K, here], here, following)
    acts_KT = ~mdps.terminal_MS[mdp_K[:, None], path[:-1].T]
    rollout_X, time_X = np.nonzero(acts_KT)
    return Rollouts(
        mdp_K=mdp_K,
        group_K=np.arange(count) // size,
        success_K=path[-1] == mdps.goal,
        offset_K=np.concatenate([[0], np.cumsum(acts_KT.sum(axis=1))]),
        rollout_X=rollout_X,
        time_X=time_X,
        state_X=path[time_X, rollout_X],
        action_X=action[time_X, rollout_X],
        target_X=path[time_X + 1, rollout_X],
    )


def _draw(cumulative_KC: Floats, rng: np.random.Generator) -> Ints:
    """One index per row, by its cumulative probabilities."""
    draw = rng.random((len(cumulative_KC), 1)) * cumulative_KC[:, -1:]
    return (cumulative_KC <= draw).sum(axis=1)


def to_batch(rollouts: Rollouts, mdps: MDPs, history: int = 1) -> Batch:
    """The arrays of ``milegpo_plugin.groups`` without the detour through trajectories.

    A node is a state of a group, or its last ``history`` states. Ends are recorded; every success
    of a group ends in its one goal node.
    """
    source_X, target_X = _state_codes(rollouts, mdps, history)
    group_X = rollouts.group_K[rollouts.rollout_X]
    span = max(source_X.max(), target_X.max()) + 1
    nodes, node_X = np.unique(
        np.concatenate([group_X * span + source_X, group_X * span + target_X]), return_inverse=True
    )
    group_N, code_N = np.divmod(nodes, span)
    last = rollouts.offset_K[1:] - 1
    reward_X = np.zeros(len(source_X))
    reward_X[last] = rollouts.success_K
    count = len(rollouts.mdp_K)
    return Batch(
        task_ids=tuple(map(str, range(rollouts.group_K[-1] + 1))),
        input_K=np.arange(count),
        group_K=rollouts.group_K,
        score_K=rollouts.success_K.astype(np.float64),
        success_K=rollouts.success_K,
        offset_K=rollouts.offset_K,
        rollout_S=rollouts.rollout_X,
        source_S=node_X[: len(source_X)],
        target_S=node_X[len(source_X) :],
        choice_S=node_X[: len(source_X)] * mdps.legal_MSA.shape[2] + rollouts.action_X,
        reward_S=reward_X,
        invalid_S=np.zeros(len(source_X), dtype=np.bool_),
        state_N=(),
        group_N=group_N,
        goal_N=code_N == mdps.goal,
        end_N=np.zeros(len(nodes), dtype=np.bool_),
        name_I=(),
        row_I=np.arange(count),
        order_I=np.arange(count),
        keys=StateKeys([], []),
        skipped=(),
        notes=(),
    )


def _state_codes(rollouts: Rollouts, mdps: MDPs, history: int) -> tuple[Ints, Ints]:
    """Numbers of the last ``history`` states before and after each step; the goal has no history."""
    size = mdps.goal + 1
    source_X, target_X = rollouts.state_X.copy(), rollouts.target_X.copy()
    for back in range(1, history):
        place = size * (size + 1) ** (back - 1)
        source_X += place * _state_before(rollouts, back)
        target_X += place * _state_before(rollouts, back - 1)
    return source_X, np.where(rollouts.target_X == mdps.goal, mdps.goal, target_X)


def _state_before(rollouts: Rollouts, back: int) -> Ints:
    """1 + the state ``back`` steps before each step; 0 before the start. Shape (X,)."""
    position = np.arange(len(rollouts.state_X))
    exists = rollouts.time_X >= back
    return np.where(exists, rollouts.state_X[position - np.where(exists, back, 0)] + 1, 0)
