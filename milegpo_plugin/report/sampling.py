"""How much of a batch a page shows, so that its size stays bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from milegpo_plugin.credit import Credit


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds of what one page shows."""

    rollouts: int  # on the page
    rollouts_per_group: int
    steps: int  # of one rollout
    states: int  # drawn in one graph
    text: int  # characters of one observation or action


ATTEMPTS: Final = (
    Limits(rollouts=256, rollouts_per_group=32, steps=400, states=160, text=4000),
    Limits(rollouts=128, rollouts_per_group=16, steps=200, states=120, text=1200),
    Limits(rollouts=64, rollouts_per_group=8, steps=100, states=80, text=400),
    Limits(rollouts=16, rollouts_per_group=8, steps=60, states=60, text=200),
)
"""Tried in this order until the page is small enough."""


def sample_groups(credit: Credit, limits: Limits) -> list[int]:
    """Groups that are shown: all, or a sample spread evenly over the sorted tasks."""
    sizes = np.minimum(credit.graph.rollouts_G, limits.rollouts_per_group)
    count = len(sizes) if sizes.sum() <= limits.rollouts else max(1, int(limits.rollouts // sizes.mean()))
    return _spread(len(sizes), count)


def sample_rollouts(credit: Credit, group: int, limits: Limits) -> list[int]:
    """Rollouts of a group that are shown: all, or a sample with successes and failures in proportion."""
    members = np.flatnonzero(credit.batch.group_K == group)
    by_outcome = members[np.argsort(~credit.batch.success_K[members], kind="stable")]
    picked = _spread(len(members), min(len(members), limits.rollouts_per_group))
    return sorted(int(by_outcome[position]) for position in picked)


def _spread(total: int, count: int) -> list[int]:
    return sorted({round(position) for position in np.linspace(0, total - 1, count).tolist()})
