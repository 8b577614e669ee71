"""Means over MDPs with bootstrap intervals."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.ground_truth.mdps import Floats

RESAMPLES = 10_000
LEVEL = 0.95


class Interval(NamedTuple):
    """A mean over MDPs and the ends of its 95% percentile bootstrap interval."""

    mean: float
    low: float
    high: float

    def excludes_zero(self) -> bool:
        """Whether the mean is significantly different from 0."""
        return self.low > 0 or self.high < 0


def interval(value_M: Any) -> Interval | None:
    """Over the MDPs that have a value; None when none has."""
    known: Floats = np.asarray(value_M, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not len(known):
        return None
    means = _resampling(len(known)) @ known
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(known.mean()), float(low), float(high))


@lru_cache(maxsize=8)
def _resampling(count: int) -> Floats:
    """How much each of ``count`` values weighs in each resample. Shape (RESAMPLES, count)."""
    draws = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    first = np.arange(RESAMPLES)[:, None] * count
    return np.bincount((draws + first).ravel(), minlength=RESAMPLES * count).reshape(RESAMPLES, count) / count


def area(curve_TM: Floats) -> Floats:
    """Mean success probability over the iterations after the first update. Shape (M,)."""
    return np.asarray(curve_TM[1:].mean(axis=0))
