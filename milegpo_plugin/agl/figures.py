"""Figures and warnings about one training batch that every trainer's log gets."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from milegpo_plugin.credit import Credit
from milegpo_plugin.flags import FLAGS
from milegpo_plugin.types import Skipped, Trajectory

PREFIX: Final = "milegpo/"
SHOWN_PROBLEMS: Final = 5

logger = logging.getLogger(__name__)


def credit_figures(credit: Credit) -> dict[str, float]:
    """What :meth:`Credit.metrics` measures, and its counts of groups as shares."""
    measured = credit.metrics()
    figures = {f"{PREFIX}{slug(name)}": value for name, value in measured.items()}
    groups = measured["groups"]
    for name in ("milestones", "traps"):
        figures[f"{PREFIX}{name}_per_group"] = measured[name] / groups
    for name in ("without_signal", "rescued"):
        figures[f"{PREFIX}share_of_groups_{name}"] = measured[f"groups_{name}"] / groups
    return figures


def step_figures(skipped: Iterable[Skipped]) -> dict[str, float]:
    """Steps without a training row, by reason."""
    reasons = Counter(item.reason for item in skipped if item.kind == "step")
    total = {f"{PREFIX}steps_skipped": float(sum(reasons.values()))}
    return total | {f"{PREFIX}steps_skipped/{slug(name)}": float(n) for name, n in sorted(reasons.items())}


def flag_figures(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Rollouts that carry a flag, or have a step that does."""
    flags: Counter[str] = Counter()
    for trajectory in trajectories:
        flags.update({*trajectory.flags, *(flag for step in trajectory.steps for flag in step.flags)})
    return {f"{PREFIX}flags/{name}": float(flags[name]) for name in FLAGS if flags[name]}


def outcome_figures(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """The mean outcome of the rollouts whose outcome is known; nothing without any."""
    known = [trajectory.reward for trajectory in trajectories if trajectory.reward is not None]
    return {f"{PREFIX}outcome_reward": float(np.mean(known))} if known else {}


def reason_counts(skipped: Iterable[Skipped]) -> Counter[str]:
    """How often each thing was left out for each reason."""
    return Counter(f"{item.kind}: {item.reason}" for item in skipped)


def first_problems(skipped: Sequence[Skipped]) -> str:
    """The end of an error message: the first things that were left out; empty without any."""
    if not skipped:
        return ""
    shown = "; ".join(f"{item.id}: {item.reason}" for item in skipped[:SHOWN_PROBLEMS])
    return f". First of {len(skipped)} problems: {shown}"


def warn_of_singletons(credit: Credit, step: int) -> None:
    """A rollout that is compared with no other learns nothing from its outcome."""
    figures = credit.metrics()
    if 2 * figures["groups_of_one"] > figures["groups"]:
        logger.warning(
            "step %d: %.0f of %.0f groups have one usable rollout and learn nothing: raise rollout.n, "
            "or look at the skip reasons",
            step,
            figures["groups_of_one"],
            figures["groups"],
        )


def slug(name: str) -> str:
    """A reason as a part of a metric's name."""
    return name.replace(" ", "_")
