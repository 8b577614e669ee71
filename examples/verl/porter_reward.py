"""The outcome of the porter: 1 for a delivered parcel, else 0."""

from __future__ import annotations

from typing import Any


def score(_task: dict[str, Any], result: dict[str, Any]) -> float:
    """Called after each rollout with the task and what the agent returned."""
    return 1.0 if result["delivered"] else 0.0
