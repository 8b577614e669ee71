"""Milestone discovery: which states successes pass, and where failures stay (eqs. 2–7).

Axes: ``_G`` groups, ``_N`` nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit.graph import StateGraph
from milegpo_plugin.credit.residue import RESIDUE
from milegpo_plugin.credit.segments import ratio
from milegpo_plugin.groups import Bools, Floats


@dataclass(frozen=True, slots=True)
class Candidates:
    """Scores of milestone and trap candidates; 0 where a node is no candidate."""

    milestone_N: Bools  # (N,) milestone candidate
    trap_N: Bools  # (N,) admitted trap
    coverage_N: Floats  # (N,) m(v): share of the successes that visit the node
    milestone_score_N: Floats  # (N,) S0+
    trap_score_N: Floats  # (N,) S-


def score_candidates(graph: StateGraph, config: CreditConfig) -> Candidates:
    """Score milestones (eqs. 2–5) and traps (eqs. 6–7)."""
    milestone_N = ~graph.goal_N & (graph.successes_N > 0) & (graph.visits_N >= config.min_support)
    coverage_N = graph.successes_N / np.maximum(graph.successes_G, 1)[graph.group_N]
    trap_score_N = _trap_score(graph, config)
    seen = (graph.visits_N >= config.min_trap_visits) | (graph.revisits_N > 0)
    trap_N = (
        ~graph.end_N & (graph.successes_N == 0) & seen & (trap_score_N >= config.min_trap_score - RESIDUE)
    )
    return Candidates(
        milestone_N=milestone_N,
        trap_N=trap_N,
        coverage_N=coverage_N,
        milestone_score_N=np.where(milestone_N, _milestone_score(graph, coverage_N, config), 0.0),
        trap_score_N=np.where(trap_N, trap_score_N, 0.0),
    )


def _milestone_score(graph: StateGraph, coverage_N: Floats, config: CreditConfig) -> Floats:
    """S0+(v) = w_s l+(v) + w_m m(v) + w_c C(v) (eqs. 2–5). Shape (N,)."""
    lift_N = np.maximum(graph.success_rate_N - graph.success_rate_G[graph.group_N], 0.0)
    return (
        config.success_lift_weight * lift_N
        + config.coverage_weight * coverage_N
        + config.centrality_weight * _centrality(graph)
    )


def _centrality(graph: StateGraph) -> Floats:
    """C(v): degree, as a share of the largest among nodes that successes visit. Shape (N,)."""
    size = len(graph.group_N)
    degree_N = np.bincount(graph.source_E, minlength=size) + np.bincount(graph.target_E, minlength=size)
    largest_G = graph.nodes.largest(np.where(graph.successes_N > 0, degree_N, 0.0))
    return ratio(degree_N, largest_G[graph.group_N])


def _trap_score(graph: StateGraph, config: CreditConfig) -> Floats:
    """S-(v) = w_f l-(v) + w_l f-(v) L(v) (eqs. 6–7). Shape (N,)."""
    failures_G = graph.rollouts_G - graph.successes_G
    lift_N = np.maximum((1 - graph.success_rate_N) - (1 - graph.success_rate_G[graph.group_N]), 0.0)
    share_N = (graph.visits_N - graph.successes_N) / np.maximum(failures_G, 1)[graph.group_N]
    loops_N = graph.revisits_N / graph.visits_N
    score_N: Floats = config.failure_lift_weight * lift_N + config.loop_weight * share_N * loops_N
    return score_N
