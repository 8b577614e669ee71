"""Sums and extremes over the parts of a partition, in a few array operations.

Items that share an integer key form a segment: the steps that leave one state, the edges that enter
one node, the rollouts of one group. Only keys that occur have a segment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from milegpo_plugin.groups import Floats, Ints

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Segments:
    """X items partitioned into Y segments."""

    key_Y: Ints  # (Y,) the keys, ascending
    size_Y: Ints  # (Y,) items in each segment
    segment_X: Ints  # (X,) segment of each item
    order_X: Ints  # (X,) item indices, segment after segment, stable
    start_Y: Ints  # (Y,) first position of each segment in ``order_X``

    @classmethod
    def of(cls, key_X: Ints) -> Segments:
        """Partition the items by their key."""
        order = np.argsort(key_X, kind="stable")
        ordered = key_X[order]
        first = np.ones(len(ordered), dtype=np.bool_)
        first[1:] = ordered[1:] != ordered[:-1]
        start = np.flatnonzero(first)
        segment = np.empty(len(ordered), dtype=np.int64)
        segment[order] = np.cumsum(first) - 1
        return cls(ordered[start], np.diff(start, append=len(ordered)), segment, order, start)

    def first(self, value_X: Floats) -> Floats:
        """The value of the first item of each segment. Shape (Y,)."""
        return value_X[self.order_X[self.start_Y]]

    def total(self, value_X: Any) -> Floats:
        """Shape (Y,)."""
        return np.bincount(self.segment_X, weights=value_X, minlength=len(self.key_Y)).astype(
            np.float64, copy=False
        )

    def largest(self, value_X: Floats) -> Floats:
        """Shape (Y,)."""
        return self._reduce(np.maximum.reduceat, value_X)

    def smallest(self, value_X: Floats) -> Floats:
        """Shape (Y,)."""
        return self._reduce(np.minimum.reduceat, value_X)

    def spread(self, value_Y: NDArray[Scalar]) -> NDArray[Scalar]:
        """Every item gets the value of its segment. Shape (X,)."""
        return value_Y[self.segment_X]

    def mean_of_others(self, value_X: Floats) -> Floats:
        """Mean over the other items of the segment; an only item gets its own value. Shape (X,)."""
        others = self.spread(self.size_Y) - 1
        rest = self.spread(self.total(value_X)) - value_X
        return np.where(others > 0, ratio(rest, others), value_X)

    def scatter(self, value_Y: Floats, size: int) -> Floats:
        """Values at their keys in an array of zeros. Shape (size,)."""
        result = np.zeros(size)
        result[self.key_Y] = value_Y
        return result

    def _reduce(self, reduceat: Callable[..., Floats], value_X: Floats) -> Floats:
        return reduceat(value_X[self.order_X], self.start_Y) if len(value_X) else np.zeros(0)


def count_distinct(item_X: Ints, owner_X: Ints, mark_O: Any, size: int) -> tuple[Ints, Ints]:
    """Owners of each item, each counted once; and how many of them are marked. Shapes (size,)."""
    pairs = np.unique(item_X * len(mark_O) + owner_X)
    item, owner = np.divmod(pairs, len(mark_O))
    return np.bincount(item, minlength=size), np.bincount(item[mark_O[owner]], minlength=size)


def ratio(numerator: Any, denominator: Any) -> Floats:
    """Divide, and give 0 where the denominator is 0 (method.md §5, last line)."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, dtype=np.float64), denominator)
    result = np.zeros(top.shape)
    np.divide(top, bottom, out=result, where=bottom != 0)
    return result
