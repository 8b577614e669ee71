"""Sums and extremes over the parts of a partition, in a few array operations.

Items that share an integer key form a segment: the steps that leave one state, the edges that enter
one node, the rollouts of one group. Only keys that occur have a segment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from milegpo_plugin.groups import Bools, Floats, Ints

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
        """Partition the items by their key, which is not negative."""
        narrow = key_X.astype(np.min_scalar_type(key_X.max(initial=0)))  # numpy sorts 16 bits by radix
        return cls._of_ordered(key_X, np.argsort(narrow, kind="stable"))

    @classmethod
    def of_ascending(cls, key_X: Ints) -> Segments:
        """The same where the keys ascend already."""
        return cls._of_ordered(key_X, np.arange(len(key_X)))

    @classmethod
    def _of_ordered(cls, key_X: Ints, order_X: Ints) -> Segments:
        ordered = key_X[order_X]
        first = np.ones(len(ordered), dtype=np.bool_)
        first[1:] = ordered[1:] != ordered[:-1]
        start = np.flatnonzero(first)
        segment = np.empty(len(ordered), dtype=np.int64)
        segment[order_X] = np.cumsum(first) - 1
        return cls(ordered[start], np.diff(start, append=len(ordered)), segment, order_X, start)

    def total(self, value_X: Any) -> Floats:
        """Shape (Y,)."""
        return np.bincount(self.segment_X, weights=value_X, minlength=len(self.key_Y)).astype(
            np.float64, copy=False
        )

    def count_owners(self, owner_X: Ints, mark_O: Bools) -> tuple[Ints, Ints]:
        """Owners in each segment, each counted once, and those that are marked. Shapes (Y,).

        The owners of the items must ascend, so that equal ones stand side by side in a segment.
        """
        owner = owner_X[self.order_X]
        new = np.ones(len(owner), dtype=np.bool_)
        new[1:] = owner[1:] != owner[:-1]
        new[self.start_Y] = True
        counts = np.add.reduceat(np.stack([new, new & mark_O[owner]]).astype(np.int64), self.start_Y, axis=1)
        return counts[0], counts[1]

    def largest(self, value_X: Floats) -> Floats:
        """Shape (Y,)."""
        largest: Floats = np.maximum.reduceat(value_X[self.order_X], self.start_Y)
        return largest

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


def ratio(numerator: Any, denominator: Any) -> Floats:
    """Divide, and give 0 where the denominator is 0 (method.md §5, last line)."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, dtype=np.float64), denominator)
    result = np.zeros(top.shape)
    np.divide(top, bottom, out=result, where=bottom != 0)
    return result
