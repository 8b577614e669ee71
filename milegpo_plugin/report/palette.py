"""Colours that keep their meaning without red-green vision, on light and dark grounds.

Blue won, orange lost, grey neither. Shapes, signs and line styles say the same.
"""

from __future__ import annotations

from typing import Final

WON: Final = "#2f7fd1"
LOST: Final = "#d9700a"
NEITHER: Final = "#9aa3ad"
MIXED: Final = "#8a919a"

SCORE_SCALE: Final = ((0.0, LOST), (0.5, NEITHER), (1.0, WON))
"""From the strongest trap over ordinary states to the strongest milestone."""

LINES: Final = (WON, LOST, "#6f4fa0", "#2a9d8f", "#8c6d1f", "#7a7f87")
"""Curves of training figures, in order."""


def success_colour(rate: float) -> str:
    """Colour of a move by the success rate of the rollouts that made it."""
    if rate in (0.0, 1.0):
        return WON if rate else LOST
    return MIXED if 1 / 3 < rate < 2 / 3 else "#6f9fd0" if rate > 0.5 else "#cf9556"


def traffic_width(rollouts: int) -> float:
    """Line width of a move by the rollouts that made it."""
    return 1.0 if rollouts == 1 else 2.0 if rollouts == 2 else 3.2 if rollouts <= 4 else 4.6


def signed_score(record: dict[str, object], strongest_trap: float) -> float:
    """From -1, the group's strongest trap, to 1, its strongest milestone."""
    if record["kind"] == "goal":
        return 1.0
    trap = record["trap_score"]
    if isinstance(trap, float) and strongest_trap > 0:
        return -trap / strongest_trap
    return float(record["weight"])  # type: ignore[arg-type]
