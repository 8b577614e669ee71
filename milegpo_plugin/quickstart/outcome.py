"""Reward of the quickstart: 1 when the coin was found, else 0."""

from __future__ import annotations

from typing import Any


def found_coin(task: dict[str, Any], result: dict[str, Any]) -> float:
    """The outcome of one game, from what the agent returned."""
    del task
    return float(result["found"])
