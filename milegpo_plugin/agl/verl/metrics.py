"""Figures of one step for the trainer's logger.

verl's own ``critic/score`` and ``critic/rewards`` hold credit here, not outcomes:
``training/reward`` and ``milegpo/outcome_reward`` are the outcomes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from milegpo_plugin.agl.verl.packing import Packed
from milegpo_plugin.agl.verl.reader import Played
from milegpo_plugin.credit import Credit
from milegpo_plugin.flags import FLAGS
from milegpo_plugin.rows import RowBatch
from milegpo_plugin.types import Skipped, Trajectory

PREFIX: Final = "milegpo/"


def batch_metrics(
    played: Sequence[Played], credit: Credit, rows: RowBatch, packed: Packed, *, credit_seconds: float
) -> dict[str, float]:
    """Everything about one batch; names of the stock daemon keep their meaning."""
    figures = _credit_figures(credit)
    figures |= {f"{PREFIX}{name}": value for name, value in _row_figures(rows, packed).items()}
    figures |= _flag_figures([item.trajectory for item in played])
    figures[f"{PREFIX}stale_attempts"] = _count(played, "attempt")
    figures[f"{PREFIX}credit_seconds"] = credit_seconds
    return figures | _training_figures([item.trajectory for item in played], packed)


def validation_metrics(trajectories: Sequence[Trajectory], threshold: float) -> dict[str, float]:
    """Outcomes of a validation run; unknown outcomes are left out, not counted as 0."""
    known = [t.reward for t in trajectories if t.reward is not None]
    if not known:
        return {}
    return {
        "val/milegpo/outcome_reward": float(np.mean(known)),
        "val/milegpo/success_rate": float(np.mean([reward > threshold for reward in known])),
    }


def _credit_figures(credit: Credit) -> dict[str, float]:
    measured = credit.metrics()
    figures = {f"{PREFIX}{_slug(name)}": value for name, value in measured.items()}
    groups = measured["groups"]
    for name in ("milestones", "traps"):
        figures[f"{PREFIX}{name}_per_group"] = measured[name] / groups
    for name in ("without_signal", "rescued"):
        figures[f"{PREFIX}share_of_groups_{name}"] = measured[f"groups_{name}"] / groups
    return figures


def _row_figures(rows: RowBatch, packed: Packed) -> dict[str, float]:
    advantages = np.array([row.advantage for row in rows.rows])
    reasons = Counter(item.reason for item in _steps(rows.skipped, packed.skipped))
    figures = {
        "rows": float(len(packed.rows)),
        "advantage_rms": float(np.sqrt(np.mean(advantages**2))) if len(advantages) else 0.0,
        "steps_skipped": float(sum(reasons.values())),
    }
    return figures | {f"steps_skipped/{_slug(name)}": float(n) for name, n in sorted(reasons.items())}


def _steps(*parts: Iterable[Skipped]) -> list[Skipped]:
    return [item for part in parts for item in part if item.kind == "step"]


def _flag_figures(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Rollouts that carry a flag, or have a step that does."""
    flags: Counter[str] = Counter()
    for trajectory in trajectories:
        flags.update({*trajectory.flags, *(flag for step in trajectory.steps for flag in step.flags)})
    return {f"{PREFIX}flags/{name}": float(flags[name]) for name in FLAGS if flags[name]}


def _count(played: Sequence[Played], kind: str) -> float:
    return float(sum(problem.kind == kind for item in played for problem in item.problems))


def _training_figures(trajectories: Sequence[Trajectory], packed: Packed) -> dict[str, float]:
    known = [t.reward for t in trajectories if t.reward is not None]
    figures = {
        "training/n_rollouts": float(len(trajectories)),
        "training/n_rollouts_w_trace": float(sum(bool(t.steps) for t in trajectories)),
        "training/n_rollouts_w_reward": float(len(known)),
        "training/n_truncated_triplets": float(packed.truncated),
        "training/n_triplets": float(len(packed.rows)),
        "training/n_unmerged_rollouts": float(packed.split_rollouts),
    }
    if known:
        mean = float(np.mean(known))
        figures |= {"training/reward": mean, f"{PREFIX}outcome_reward": mean}
    return figures


def _slug(name: str) -> str:
    return name.replace(" ", "_")
