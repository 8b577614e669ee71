"""Progress-contrastive calibration: does a milestone do local work? (eqs. 11–19)

A branch is an edge beside its siblings, the other edges that leave the same state.

Axes: ``_G`` groups, ``_N`` nodes, ``_E`` edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit.graph import UNREACHABLE, StateGraph
from milegpo_plugin.credit.milestones import Candidates
from milegpo_plugin.credit.residue import without_residue
from milegpo_plugin.credit.segments import ratio
from milegpo_plugin.credit.uncertainty import Intervals, branch_separation
from milegpo_plugin.groups import Bools, Floats


@dataclass(frozen=True, slots=True)
class Calibration:
    """Local evidence of every edge and node, and the calibrated scores."""

    margin_E: Floats  # (E,) success rate minus the mean of the siblings
    branch_contrast_E: Floats  # (E,) c_bcc
    progress_E: Floats  # (E,) psi
    branch_evidence_N: Floats  # (N,) b
    progress_evidence_N: Floats  # (N,) psi-bar
    kept_N: Bools  # (N,) candidates with local evidence or coverage
    calibrated_score_N: Floats  # (N,) S_pcc+; 0 where a node is no candidate


def calibrate_scores(
    graph: StateGraph, candidates: Candidates, intervals: Intervals, config: CreditConfig
) -> Calibration:
    """Raise the scores that local evidence supports, lower the others (eqs. 17–19)."""
    margin_E = _margin(graph)
    contrast_E = _branch_contrast(graph, margin_E)
    if config.reliability == "lower_bound":
        contrast_E = contrast_E * branch_separation(graph, intervals)
    branch_N = _best_arrival(graph, contrast_E)
    progress_E = _local_progress(graph, margin_E, config)
    progress_N = _progress_evidence(graph, progress_E)
    supported_N = (progress_N > 0) | (candidates.coverage_N >= config.support_threshold)
    if config.keep_branch:
        supported_N |= branch_N > 0
    evidence_N = config.branch_weight * branch_N + config.progress_weight * progress_N
    factor_N = np.where(supported_N, 1 + config.calibration_weight * evidence_N, config.unsupported_factor)
    return Calibration(
        margin_E=margin_E,
        branch_contrast_E=contrast_E,
        progress_E=progress_E,
        branch_evidence_N=branch_N,
        progress_evidence_N=progress_N,
        kept_N=candidates.milestone_N & supported_N,
        calibrated_score_N=candidates.milestone_score_N * factor_N,
    )


def _margin(graph: StateGraph) -> Floats:
    """p+(e) minus the mean p+ of its siblings; 0 without a sibling (eq. 11). Shape (E,)."""
    return without_residue(graph.success_rate_E - graph.branches.mean_of_others(graph.success_rate_E))


def _branch_contrast(graph: StateGraph, margin_E: Floats) -> Floats:
    """c_bcc(e) = margin(e) / max |margin| of the group (eq. 12). Shape (E,)."""
    return ratio(margin_E, graph.edges.spread(graph.edges.largest(np.abs(margin_E))))


def _best_arrival(graph: StateGraph, value_E: Floats) -> Floats:
    """Largest positive value among the edges into each node, else 0 (eqs. 13, 15). Shape (N,)."""
    best = np.maximum(graph.arrivals.largest(value_E), 0.0)
    return graph.arrivals.scatter(best, len(graph.group_N))


def _local_progress(graph: StateGraph, margin_E: Floats, config: CreditConfig) -> Floats:
    """psi(e = (u, v)) = a_d [d(u) - d(v)] + a_s [p+(v) - p_q+] - a_f l-(e) (eq. 14). Shape (E,)."""
    near_E, far_E = graph.goal_distance_N[graph.target_E], graph.goal_distance_N[graph.source_E]
    known_E = (near_E != UNREACHABLE) & (far_E != UNREACHABLE)
    lift_E = (graph.success_rate_N - graph.success_rate_G[graph.group_N])[graph.target_E]
    alone_E = graph.branches.spread(graph.branches.size_Y) == 1
    failure_E = np.maximum(-np.where(alone_E, lift_E, margin_E), 0.0)
    return without_residue(
        config.progress_distance_weight * np.where(known_E, far_E - near_E, 0)
        + config.progress_success_weight * lift_E
        - config.progress_failure_weight * failure_E
    )


def _progress_evidence(graph: StateGraph, progress_E: Floats) -> Floats:
    """psi-bar(v): best progress of a success into v, over the group's largest (eqs. 15–16). Shape (N,)."""
    best_N = _best_arrival(graph, np.where(graph.successes_E > 0, progress_E, 0.0))
    return ratio(best_N, graph.nodes.spread(graph.nodes.largest(best_N)))
