"""How far a handful of rollouts can be trusted: Wilson intervals of success rates.

E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).

Axes: ``_N`` nodes, ``_E`` edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from milegpo_plugin.credit.graph import StateGraph
from milegpo_plugin.credit.segments import ratio
from milegpo_plugin.groups import Floats


@dataclass(frozen=True, slots=True)
class Intervals:
    """Wilson intervals of the success rates of nodes and edges."""

    low_N: Floats  # (N,)
    high_N: Floats  # (N,)
    low_E: Floats  # (E,)
    high_E: Floats  # (E,)


def success_intervals(graph: StateGraph, confidence: float) -> Intervals:
    """The interval of every node and edge."""
    low_N, high_N = wilson_interval(graph.successes_N, graph.visits_N, confidence)
    low_E, high_E = wilson_interval(graph.successes_E, graph.visits_E, confidence)
    return Intervals(low_N, high_N, low_E, high_E)


def wilson_interval(successes: Any, trials: Any, confidence: float) -> tuple[Floats, Floats]:
    """Ends of the Wilson score interval of successes / trials, elementwise; trials are positive."""
    z2 = ndtri((1 + confidence) / 2) ** 2
    rate = successes / trials
    centre = (rate + z2 / (2 * trials)) / (1 + z2 / trials)
    half = np.sqrt(z2 * (rate * (1 - rate) / trials + z2 / (4 * trials**2))) / (1 + z2 / trials)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def branch_separation(graph: StateGraph, intervals: Intervals) -> Floats:
    """How far each branch stands apart from its siblings: 1 - overlap of their intervals. Shape (E,).

    The siblings' interval goes from the mean of their lower to the mean of their upper ends. The
    overlap is a share of the shorter interval: 1 when one lies in the other.
    """
    low_E, high_E = intervals.low_E, intervals.high_E
    other_low_E, other_high_E = graph.branches.mean_of_others(low_E), graph.branches.mean_of_others(high_E)
    overlap_E = np.minimum(high_E, other_high_E) - np.maximum(low_E, other_low_E)
    shorter_E = np.minimum(high_E - low_E, other_high_E - other_low_E)
    return 1 - np.clip(ratio(overlap_E, shorter_E), 0.0, 1.0)
