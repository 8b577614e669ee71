"""How close estimates come to the truth: signs, ranks within a state, milestones and traps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.ground_truth.exact import policy_values, step_advantages
from benchmarks.ground_truth.families import Problem
from benchmarks.ground_truth.mdps import START, Bools, Floats, Ints, MDPs
from benchmarks.ground_truth.sampling import Rollouts
from milegpo_plugin.credit.result import Credit
from milegpo_plugin.credit.segments import Segments

LEAST_ADVANTAGE = 1e-3
"""Steps whose true advantage is smaller have no sign to agree with."""
MOST = 0.5
"""A true milestone lies on at least this share of optimal rollouts."""
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Truth:
    """The exact advantage of every step of a sample."""

    rollouts: Rollouts
    advantage_X: Floats
    count: int  # of MDPs


def exact_advantages(rollouts: Rollouts, mdps: MDPs, policy_MSA: Floats) -> Floats:
    """A^pi of every step. Shape (X,)."""
    value_TMS = policy_values(mdps, policy_MSA)
    return step_advantages(
        mdps, value_TMS, rollouts.time_X, rollouts.mdp_X, rollouts.state_X, rollouts.action_X
    )


def sign_agreement(truth: Truth, estimate_X: Floats) -> Floats:
    """Share of steps whose sign is right; an estimate of 0 counts half. Shape (M,)."""
    clear_X = np.abs(truth.advantage_X) > LEAST_ADVANTAGE
    right_X = 0.5 + 0.5 * np.sign(estimate_X) * np.sign(truth.advantage_X)
    mdp_X = truth.rollouts.mdp_X[clear_X]
    return _mean_by(mdp_X, right_X[clear_X], truth.count)


def rank_correlation(truth: Truth, estimate_X: Floats) -> Floats:
    """Spearman's correlation among the steps of a group at one state, averaged over states. Shape (M,).

    States where the true advantages do not differ are left out; an estimate that does not tell the
    steps of a state apart has correlation 0 there.
    """
    rollouts = truth.rollouts
    group_X = rollouts.group_K[rollouts.rollout_X]
    states = Segments.of(group_X * (rollouts.state_X.max() + 1) + rollouts.state_X)
    true_X = _centred_ranks(states, truth.advantage_X)
    guess_X = _centred_ranks(states, estimate_X)
    spread_Y = states.total(true_X**2)
    scale_Y = np.sqrt(spread_Y * states.total(guess_X**2))
    correlation_Y = np.divide(
        states.total(true_X * guess_X), scale_Y, out=np.zeros_like(scale_Y), where=scale_Y > 0
    )
    mdp_Y = rollouts.mdp_X[states.order_X[states.start_Y]]
    usable_Y = spread_Y > 0
    return _mean_by(mdp_Y[usable_Y], correlation_Y[usable_Y], truth.count)


def _centred_ranks(states: Segments, value_X: Floats) -> Floats:
    """Ranks within each state, ties at their mean, minus the mean rank. Shape (X,)."""
    value_X = np.round(value_X, _DIGITS)
    order = np.lexsort((value_X, states.segment_X))
    rank_X = np.empty(len(value_X))
    rank_X[order] = np.arange(len(value_X))
    ordered_state, ordered_value = states.segment_X[order], value_X[order]
    changes = (np.diff(ordered_state, prepend=-1) != 0) | (np.diff(ordered_value, prepend=np.nan) != 0)
    tie_X = np.empty(len(value_X), dtype=np.int64)
    tie_X[order] = np.cumsum(changes) - 1
    ties = Segments.of(tie_X)
    rank_X = ties.spread(ties.total(rank_X) / ties.size_Y)
    return rank_X - states.spread(states.total(rank_X) / states.size_Y)


def milestone_precision(problem: Problem, rollouts: Rollouts, credit: Credit) -> dict[str, Floats]:
    """Share of the weight that lies on true milestones, and their share among candidates. Shapes (M,).

    The start and the goal, which every success passes, do not count.
    """
    mdp_N, state_N = _places(rollouts, credit)
    candidate_N = credit.milestone_N & (state_N != START)
    true_N = problem.optimal_visit_MS[mdp_N, state_N] >= MOST
    count = len(problem.mdps)
    return {
        "milestone precision": _share(mdp_N, true_N, credit.milestone_weight_N * candidate_N, count),
        "milestone base rate": _share(mdp_N, true_N, candidate_N.astype(np.float64), count),
    }


def trap_precision(problem: Problem, rollouts: Rollouts, credit: Credit) -> dict[str, Floats]:
    """Share of the trap weight on true dead ends, and the share of visited dead ends found. Shapes (M,)."""
    mdp_N, state_N = _places(rollouts, credit)
    dead_N = problem.dead_end_MS[mdp_N, state_N]
    count = len(problem.mdps)
    return {
        "trap precision": _share(mdp_N, dead_N, credit.trap_score_N, count),
        "trap recall": _share(mdp_N, credit.trap_N, dead_N.astype(np.float64), count),
        "dead end rate": _share(mdp_N, dead_N, np.ones(len(dead_N)), count),
    }


def _places(rollouts: Rollouts, credit: Credit) -> tuple[Ints, Ints]:
    """MDP and state of every node. Shapes (N,)."""
    batch = credit.batch
    state_N, mdp_N = np.zeros((2, len(batch.group_N)), dtype=np.int64)
    for node_X, state_X in ((batch.source_S, rollouts.state_X), (batch.target_S, rollouts.target_X)):
        state_N[node_X], mdp_N[node_X] = state_X, rollouts.mdp_X
    return mdp_N, state_N


def _share(mdp_N: Ints, hit_N: Bools, weight_N: Floats, count: int) -> Floats:
    """Weight on hits over all weight; NaN where an MDP has no weight. Shape (M,)."""
    hits = np.bincount(mdp_N, weights=weight_N * hit_N, minlength=count)
    total = np.bincount(mdp_N, weights=weight_N, minlength=count)
    return np.divide(hits, total, out=np.full(count, np.nan), where=total > 0)


def _mean_by(mdp_X: Ints, value_X: Floats, count: int) -> Floats:
    """Mean of each MDP's values; NaN where it has none. Shape (M,)."""
    total = np.bincount(mdp_X, weights=value_X, minlength=count)
    steps = np.bincount(mdp_X, minlength=count)
    return np.divide(total, steps, out=np.full(count, np.nan), where=steps > 0)
