"""Two estimators on the same rollouts: how far they agree, and where they differ most."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import Credit
from milegpo_plugin.groups import Floats
from milegpo_plugin.report.facts import Facts

MOST: Final = 15


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One step on which the estimators differ; ``first`` and ``second`` in units of their RMS."""

    group: int
    rollout: int
    step: int
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Agreement over the steps that both estimators credit; None where it is undefined."""

    names: tuple[str, str]
    steps: int
    correlation: float | None
    opposite: float  # share of steps with opposite signs
    scale: float  # RMS of the second estimator
    most: list[Disagreement]


def compare_credit(facts: Facts, groups: Collection[int]) -> Comparison | None:
    """Compare with the other estimator; the strongest disagreements come from the shown ``groups``.

    Both advantages are divided by their root mean square, since a trainer's step size absorbs scale.
    """
    if facts.other is None:
        return None
    first, second = facts.credit.advantage_S, aligned_advantages(facts.credit, facts.other)
    both = np.isfinite(second)
    first_S, second_S = _in_rms(first, both), _in_rms(second, both)
    return Comparison(
        names=(estimator_name(facts.credit.config), estimator_name(facts.other.config)),
        steps=int(both.sum()),
        correlation=_correlation(first_S[both], second_S[both]),
        opposite=float((first_S[both] * second_S[both] < 0).mean()) if both.any() else 0.0,
        scale=_rms(second[both]),
        most=_most(facts, first_S, second_S, groups),
    )


def aligned_advantages(credit: Credit, other: Credit) -> Floats:
    """The other's advantages at the steps of ``credit``; NaN where the other left the rollout out. Shape (S,)."""
    aligned = np.full(len(credit.advantage_S), np.nan)
    for rollout, index in enumerate(credit.batch.input_K.tolist()):
        values = other.advantages(index)
        if values is not None:
            aligned[credit.batch.offset_K[rollout] : credit.batch.offset_K[rollout + 1]] = values
    return aligned


def estimator_name(config: CreditConfig) -> str:
    """The estimator, with its stage when that is not the whole method."""
    return (
        config.estimator
        if config.stage == "pcc" or config.estimator != "milegpo"
        else f"milegpo ({config.stage})"
    )


def _in_rms(value_S: Floats, both_S: Floats) -> Floats:
    scale = _rms(value_S[both_S])
    return value_S / scale if scale > 0 else value_S


def _rms(value_X: Floats) -> float:
    return float(np.sqrt(np.mean(value_X**2))) if len(value_X) else 0.0


def _correlation(first_X: Floats, second_X: Floats) -> float | None:
    if len(first_X) < 2 or np.ptp(first_X) == 0 or np.ptp(second_X) == 0:
        return None
    return float(np.corrcoef(first_X, second_X)[0, 1])


def _most(facts: Facts, first_S: Floats, second_S: Floats, groups: Collection[int]) -> list[Disagreement]:
    """The strongest disagreement on each move, once a direction."""
    batch = facts.credit.batch
    group_S = batch.group_K[batch.rollout_S]
    gap_S = np.where(np.isin(group_S, list(groups)), np.nan_to_num(np.abs(first_S - second_S)), 0.0)
    found: dict[tuple[int, bool], Disagreement] = {}
    for step in np.argsort(-gap_S, kind="stable").tolist():
        if gap_S[step] <= 1e-9 or len(found) == MOST:
            break
        rollout, move = int(batch.rollout_S[step]), int(facts.credit.graph.edge_S[step])
        position, values = step - int(batch.offset_K[rollout]), (float(first_S[step]), float(second_S[step]))
        found.setdefault(
            (move, values[0] > values[1]), Disagreement(int(group_S[step]), rollout, position, *values)
        )
    return list(found.values())
