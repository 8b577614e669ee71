"""Reliability-calibrated shaping: potentials of milestones and traps, and the returns (eqs. 1, 8–10, 20).

Axes: ``_N`` nodes, ``_E`` edges, ``_S`` steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit.calibration import Calibration
from milegpo_plugin.credit.graph import UNREACHABLE, StateGraph, potential
from milegpo_plugin.credit.milestones import Candidates
from milegpo_plugin.credit.segments import ratio
from milegpo_plugin.credit.uncertainty import Intervals
from milegpo_plugin.groups import Floats


@dataclass(frozen=True, slots=True)
class Shaping:
    """Weights and potentials of every node, and the returns of every step."""

    milestone_weight_N: Floats  # (N,) the candidate's weight in the potential, in [0, 1]
    milestone_potential_N: Floats  # (N,) Phi+
    trap_potential_N: Floats  # (N,) Phi-
    graph_return_S: Floats  # (S,) r^G
    delta_plus_S: Floats  # (S,)
    delta_minus_S: Floats  # (S,)
    shaped_return_S: Floats  # (S,) r^M


def shape_returns(
    graph: StateGraph,
    candidates: Candidates,
    calibration: Calibration,
    intervals: Intervals,
    config: CreditConfig,
) -> Shaping:
    """r^M = r^G + c lambda (delta+ - delta-) (eq. 20)."""
    milestone_weight_N = _milestone_weight(graph, candidates, calibration, intervals, config)
    trap_weight_N = _trap_weight(graph, candidates, config)
    milestone_potential_N = potential(graph, milestone_weight_N, config.potential_decay)
    trap_potential_N = potential(graph, trap_weight_N, config.potential_decay)
    graph_return_E = _graph_return(graph, config)
    plus_E = _increase(graph, milestone_potential_N, config.milestone_weight, config)
    minus_E = _increase(graph, trap_potential_N, config.trap_weight, config)
    bonus_E = config.return_scale * config.shaping_weight * (plus_E - minus_E)
    return Shaping(
        milestone_weight_N=milestone_weight_N,
        milestone_potential_N=milestone_potential_N,
        trap_potential_N=trap_potential_N,
        graph_return_S=graph_return_E[graph.edge_S],
        delta_plus_S=plus_E[graph.edge_S],
        delta_minus_S=minus_E[graph.edge_S],
        shaped_return_S=(graph_return_E + bonus_E)[graph.edge_S],
    )


def _milestone_weight(
    graph: StateGraph,
    candidates: Candidates,
    calibration: Calibration,
    intervals: Intervals,
    config: CreditConfig,
) -> Floats:
    """1 for every candidate (md), its score (rcs) or its calibrated score, over the group's largest (pcc)."""
    if config.stage == "md":
        weight_N = candidates.milestone_N.astype(np.float64)
    elif config.stage == "rcs":
        weight_N = _over_largest(graph, candidates.milestone_score_N)
    else:
        weight_N = _over_largest(graph, calibration.calibrated_score_N)
    return weight_N * intervals.low_N if config.reliability == "lower_bound" else weight_N


def _trap_weight(graph: StateGraph, candidates: Candidates, config: CreditConfig) -> Floats:
    if config.stage == "md":
        return candidates.trap_N.astype(np.float64)
    return _over_largest(graph, candidates.trap_score_N)


def _over_largest(graph: StateGraph, score_N: Floats) -> Floats:
    """Scores divided by their maximum in the group (eq. 8). Shape (N,)."""
    return ratio(score_N, graph.nodes.spread(graph.nodes.largest(score_N)))


def _graph_return(graph: StateGraph, config: CreditConfig) -> Floats:
    """r^G(u -> v) = c gamma_G^d(v, GOAL); 0 when GOAL is out of reach (eq. 1). Shape (E,)."""
    distance_E = graph.goal_distance_N[graph.target_E]
    value_E = config.return_scale * config.graph_discount ** distance_E.astype(np.float64)
    return np.where(distance_E == UNREACHABLE, 0.0, value_E)


def _increase(graph: StateGraph, potential_N: Floats, weight: float, config: CreditConfig) -> Floats:
    """Increase max(gamma_Phi w Phi(s') - w Phi(s), 0) (eqs. 9–10), 0 at stage graph. Shape (E,)."""
    if config.stage == "graph" or config.estimator == "graphgpo":
        return np.zeros(len(graph.source_E))
    gain_E = config.potential_discount * potential_N[graph.target_E] - potential_N[graph.source_E]
    return np.maximum(weight * gain_E, 0.0)
