"""What counts as floating-point residue: differences of values that are equal on paper."""

from __future__ import annotations

from typing import Final

import numpy as np

from milegpo_plugin.groups import Floats

RESIDUE: Final = 1e-12
"""Relative to values of order one: rates, scores, and distances in edges."""


def without_residue(value_X: Floats) -> Floats:
    """Differences of rates, with residue set to exactly 0, so that its sign decides nothing."""
    return np.where(np.abs(value_X) < RESIDUE, 0.0, value_X)
