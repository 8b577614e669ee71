"""Figures of one step for the trainer's logger.

verl's own ``critic/score`` and ``critic/rewards`` hold credit here, not outcomes:
``training/reward`` and ``milegpo/outcome_reward`` are the outcomes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from milegpo_plugin.agl.figures import PREFIX, credit_figures, flag_figures, outcome_figures, step_figures
from milegpo_plugin.agl.verl.packing import Packed
from milegpo_plugin.agl.verl.reader import Played
from milegpo_plugin.credit import Credit
from milegpo_plugin.rows import RowBatch
from milegpo_plugin.types import Trajectory


def batch_metrics(
    played: Sequence[Played], credit: Credit, rows: RowBatch, packed: Packed, *, credit_seconds: float
) -> dict[str, float]:
    """Everything about one batch; names of the stock daemon keep their meaning."""
    trajectories = [item.trajectory for item in played]
    return {
        **credit_figures(credit),
        **step_figures([*rows.skipped, *packed.skipped]),
        **flag_figures(trajectories),
        **outcome_figures(trajectories),
        **_row_figures(rows, packed),
        **_platform_figures(trajectories, packed),
        f"{PREFIX}stale_attempts": _count(played, "attempt"),
        f"{PREFIX}credit_seconds": credit_seconds,
    }


def validation_metrics(trajectories: Sequence[Trajectory], threshold: float) -> dict[str, float]:
    """Outcomes of a validation run; unknown outcomes are left out, not counted as 0."""
    known = [t.reward for t in trajectories if t.reward is not None]
    if not known:
        return {}
    return {
        "val/milegpo/outcome_reward": float(np.mean(known)),
        "val/milegpo/success_rate": float(np.mean([reward > threshold for reward in known])),
    }


def _row_figures(rows: RowBatch, packed: Packed) -> dict[str, float]:
    advantages = np.array([row.advantage for row in rows.rows])
    return {
        f"{PREFIX}rows": float(len(packed.rows)),
        f"{PREFIX}advantage_rms": float(np.sqrt(np.mean(advantages**2))) if len(advantages) else 0.0,
    }


def _count(played: Sequence[Played], kind: str) -> float:
    return float(sum(problem.kind == kind for item in played for problem in item.problems))


def _platform_figures(trajectories: Sequence[Trajectory], packed: Packed) -> dict[str, float]:
    outcomes = [t.reward for t in trajectories if t.reward is not None]
    figures = {
        "training/n_rollouts": float(len(trajectories)),
        "training/n_rollouts_w_trace": float(sum(bool(t.steps) for t in trajectories)),
        "training/n_rollouts_w_reward": float(len(outcomes)),
        "training/n_truncated_triplets": float(packed.truncated),
        "training/n_triplets": float(len(packed.rows)),
        "training/n_unmerged_rollouts": float(packed.split_rollouts),
    }
    return figures | ({"training/reward": float(np.mean(outcomes))} if outcomes else {})
