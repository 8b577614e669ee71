"""Dynamic programming: what every state, action and step is truly worth."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from benchmarks.ground_truth.mdps import START, Bools, Floats, Ints, MDPs

LONG_DISCOUNT = 0.95
"""Discount of the optimal values, so that of two sure ways the shorter one is better."""


def policy_values(mdps: MDPs, policy_MSA: Floats) -> Floats:
    """Success probability within the horizon from each time and state. Shape (T + 1, M, S)."""
    moves = _policy_moves(mdps, policy_MSA)
    value = np.zeros((mdps.horizon + 1, len(mdps), mdps.goal + 1))
    value[:, :, mdps.goal] = 1.0
    for time in range(mdps.horizon - 1, -1, -1):
        ahead = (moves @ value[time + 1].ravel()).reshape(value.shape[1:])
        value[time] = np.where(mdps.terminal_MS, value[time], ahead)
    return value


def _policy_moves(mdps: MDPs, policy_MSA: Floats) -> csr_array:
    """State-to-state probabilities of all MDPs as one block-diagonal matrix. Shape (M S, M S)."""
    models, states, actions, outcomes = mdps.next_MSAO.shape
    first_state = np.arange(models)[:, None, None, None] * states
    columns = (mdps.next_MSAO + first_state).ravel()
    rows = np.arange(models * states + 1) * actions * outcomes
    weights = (policy_MSA[..., None] * mdps.prob_MSAO).ravel()
    return csr_array((weights, columns, rows), shape=(models * states,) * 2)


def success_rate(mdps: MDPs, policy_MSA: Floats) -> Floats:
    """Success probability from the start. Shape (M,)."""
    return policy_values(mdps, policy_MSA)[0, :, START]


def step_advantages(
    mdps: MDPs, value_TMS: Floats, time_X: Ints, mdp_X: Ints, state_X: Ints, action_X: Ints
) -> Floats:
    """A^pi(s, a) of steps taken at given times: Q - V with the time that is left. Shape (X,)."""
    following_XO = mdps.next_MSAO[mdp_X, state_X, action_X]
    ahead_XO = value_TMS[time_X[:, None] + 1, mdp_X[:, None], following_XO]
    action_value_X = (mdps.prob_MSAO[mdp_X, state_X, action_X] * ahead_XO).sum(axis=1)
    return action_value_X - value_TMS[time_X, mdp_X, state_X]


def optimal_action_values(mdps: MDPs, tolerance: float = 1e-9) -> Floats:
    """Q* with discount :data:`LONG_DISCOUNT` and no horizon; -inf for illegal actions. Shape (M, S, A)."""
    goal_S = np.arange(mdps.goal + 1) == mdps.goal
    value = np.tile(goal_S.astype(np.float64), (len(mdps), 1))
    while True:
        action_value = np.where(mdps.legal_MSA, LONG_DISCOUNT * _expected(mdps, value), -np.inf)
        updated = np.where(mdps.terminal_MS, goal_S, action_value.max(axis=2))
        if np.abs(updated - value).max() < tolerance:
            return action_value
        value = updated


def dead_ends(mdps: MDPs, optimal_MSA: Floats) -> Bools:
    """States from which no policy reaches the goal. Shape (M, S)."""
    hopeless = optimal_MSA.max(axis=2) <= 0
    return np.where(mdps.terminal_MS, np.arange(mdps.goal + 1) != mdps.goal, hopeless)


def optimal_visits(mdps: MDPs, optimal_MSA: Floats) -> Floats:
    """Probability that an optimal rollout passes each state. Shape (M, S).

    The optimal policy takes each of the best actions equally often. With expected visits N,
    the probability to reach v from the start is N[start, v] / N[v, v].
    """
    best = mdps.legal_MSA & (optimal_MSA >= optimal_MSA.max(axis=2, keepdims=True) - 1e-7)
    policy = best / best.sum(axis=2, keepdims=True)
    size = mdps.goal + 1
    visits = np.zeros((len(mdps), size))
    for index in range(len(mdps)):
        flow_SAO = policy[index][:, :, None] * mdps.prob_MSAO[index]
        flow_SAO[mdps.terminal_MS[index]] = 0.0
        source = np.broadcast_to(np.arange(size)[:, None, None], flow_SAO.shape)
        moves = np.zeros((size, size))
        np.add.at(moves, (source.ravel(), mdps.next_MSAO[index].ravel()), flow_SAO.ravel())
        expected = np.linalg.inv(np.eye(size) - (1 - 1e-9) * moves)
        visits[index] = expected[START] / np.diag(expected)
    return visits


def _expected(mdps: MDPs, value_MS: Floats) -> Floats:
    """Expected value of the next state. Shape (M, S, A)."""
    following = value_MS[np.arange(len(mdps))[:, None, None, None], mdps.next_MSAO]
    return np.einsum("msao,msao->msa", mdps.prob_MSAO, following)
