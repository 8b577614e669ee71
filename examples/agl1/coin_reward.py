"""The outcome of one game: 1 when the coin was found."""

from __future__ import annotations

from typing import Any


def found_coin(task: dict[str, Any], result: dict[str, Any]) -> float:
    """What the agent returned says it."""
    del task
    return float(result["found"])
