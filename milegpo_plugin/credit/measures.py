"""Figures about a batch and its credit (method.md §8).

Axes: ``_G`` groups, ``_K`` rollouts, ``_S`` steps, ``_N`` nodes, ``_E`` edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from milegpo_plugin.credit.advantages import normalize
from milegpo_plugin.credit.graph import StateGraph
from milegpo_plugin.credit.segments import Segments
from milegpo_plugin.groups import Batch, Bools, Floats, Ints

if TYPE_CHECKING:
    from milegpo_plugin.credit.result import Credit

TIE: Final = 1e-6
"""Advantages that differ by no more than this tie."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole."""

    part: int
    whole: int

    @property
    def value(self) -> float | None:
        """The part over the whole; None when the whole is empty."""
        return self.part / self.whole if self.whole else None


def measure(credit: Credit) -> dict[str, float]:
    """Counts and shares of a batch; a share of nothing is left out.

    ``groups_without_signal`` end all alike; ``groups_rescued`` are those of them that got step
    credit all the same. ``coverage`` and ``invalid_actions`` are shares of steps, ``states_shared`` of
    states. ``tie_correction`` is the share of ``tied_pairs`` that the shaped advantage ranks as their
    outcomes do.
    """
    batch, graph = credit.batch, credit.graph
    silent_G = ~groups_with_outcome_signal(batch)
    step_credit_S = steps_with_credit(credit)
    states_N = ~(graph.goal_N | graph.end_N)
    rescued_G = np.bincount(batch.group_K[batch.rollout_S[step_credit_S]], minlength=len(silent_G)) > 0
    figures = {
        "rollouts": float(len(batch.input_K)),
        "rollouts_skipped": float(len(batch.skipped)),
        "steps": float(len(batch.rollout_S)),
        "states": float(np.count_nonzero(states_N)),
        "states_shared": float((graph.visits_N[states_N] > 1).mean()),
        "success_rate": float(batch.success_K.mean()),
        "groups": float(len(silent_G)),
        "smallest_group": float(graph.rollouts_G.min()),
        "largest_group": float(graph.rollouts_G.max()),
        "groups_of_one": float(np.count_nonzero(graph.rollouts_G == 1)),
        "groups_without_signal": float(np.count_nonzero(silent_G)),
        "groups_rescued": float(np.count_nonzero(silent_G & rescued_G)),
        "coverage": coverage(batch, graph),
        "step_credit": float(step_credit_S.mean()),
        "milestones": float(np.count_nonzero(credit.milestone_weight_N)),
        "traps": float(np.count_nonzero(credit.trap_N)),
        "invalid_actions": float(batch.invalid_S.mean()),
    }
    reasons = Counter(item.reason for item in credit.skipped)
    figures |= {f"skipped/{reason}": float(number) for reason, number in sorted(reasons.items())}
    return figures | _tie_figures(credit)


def _tie_figures(credit: Credit) -> dict[str, float]:
    if credit.graph_advantage_S is None or credit.shaped_advantage_S is None:
        return {}
    ties = tie_correction(credit.batch, credit.graph_advantage_S, credit.shaped_advantage_S)
    rate = {} if ties.value is None else {"tie_correction": ties.value}
    return {"tied_pairs": float(ties.whole), **rate}


_SHARES: Final = {
    "success_rate": "rollouts",
    "coverage": "steps",
    "step_credit": "steps",
    "invalid_actions": "steps",
    "states_shared": "states",
    "tie_correction": "tied_pairs",
}
"""What the shares of :func:`measure` are shares of."""
_EXTREMES: Final = {"smallest_group": min, "largest_group": max}


def combine(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The figures of a batch from those of its parts, which share no group: the same numbers.

    A share is a count over a count, so the counts are recovered from it exactly.
    """
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: _combine_one(name, [part for part in parts if name in part]) for name in names}


def _combine_one(name: str, parts: Sequence[Mapping[str, float]]) -> float:
    if name in _EXTREMES:
        return float(_EXTREMES[name](part[name] for part in parts))
    if name not in _SHARES:
        return sum(part[name] for part in parts)
    wholes = [part[_SHARES[name]] for part in parts]
    counts = [round(part[name] * whole) for part, whole in zip(parts, wholes, strict=True)]
    return sum(counts) / sum(wholes)


def groups_with_outcome_signal(batch: Batch) -> Bools:
    """Groups whose rollouts do not all score the same. Shape (G,)."""
    groups = Segments.of_ascending(batch.group_K)
    return groups.largest(np.abs(normalize(batch.score_K, groups, "mean"))) > 0


def steps_with_credit(credit: Credit) -> Bools:
    """Steps whose advantage has a step part. Shape (S,)."""
    if credit.step_advantage_S is None:
        return np.zeros(len(credit.advantage_S), dtype=np.bool_)
    return np.not_equal(credit.step_advantage_S, 0.0)


def coverage(batch: Batch, graph: StateGraph) -> float:
    """Share of the transitions whose source state at least two rollouts of the group visit."""
    return float((graph.visits_N[batch.source_S] > 1).mean())


def ambiguity(graph: StateGraph) -> Share:
    """Of the pairs of edges that leave one state, those that tie under the final distance."""
    distance_E = graph.goal_distance_N[graph.target_E]
    alike = Segments.of(graph.source_E * (distance_E.max(initial=0) + 2) + distance_E + 1)
    return Share(_pairs(alike.size_Y), _pairs(graph.branches.size_Y))


def _pairs(size_Y: Ints) -> int:
    return int((size_Y * (size_Y - 1) // 2).sum())


def tie_correction(batch: Batch, graph_S: Floats, shaped_S: Floats) -> Share:
    """Of the tied pairs of transitions, those that the shaped advantage ranks by their outcomes.

    A pair leaves one state, ends in opposite outcomes and ties under the graph advantage. It is
    corrected when the successful one has the higher shaped advantage.
    """
    order = np.lexsort((graph_S, batch.source_S))
    source, value = batch.source_S[order], graph_S[order]
    apart = (source[1:] != source[:-1]) | (value[1:] - value[:-1] > TIE)
    tie = np.concatenate([[0], np.cumsum(apart)])
    won = batch.success_K[batch.rollout_S[order]]
    wins, losses = np.bincount(tie, weights=won), np.bincount(tie, weights=~won)
    return Share(_ranked_pairs(tie, shaped_S[order], won), int(wins @ losses))


def _ranked_pairs(tie_X: Ints, value_X: Floats, won_X: Bools) -> int:
    """Pairs (winner, loser) of one tie in which the winner's value is higher by more than TIE."""
    key = np.lexsort((won_X, np.where(won_X, value_X - TIE, value_X), tie_X))
    tie, won = tie_X[key], won_X[key]
    losers_so_far = np.cumsum(~won)
    start = np.flatnonzero(np.concatenate([[True], tie[1:] != tie[:-1]]))
    losers_before: Ints = np.repeat(losers_so_far[start] - ~won[start], np.diff(start, append=len(tie)))
    return int((losers_so_far - losers_before)[won].sum())
