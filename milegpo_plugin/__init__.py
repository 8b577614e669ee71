"""Step-level credit for unmodified tool-using agents, from their OpenTelemetry spans.

Importing this package loads neither torch nor agentlightning: every public name is
resolved on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from milegpo_plugin.agl.agent import UserAgent
    from milegpo_plugin.agl.verl.algorithm import MileGPO
    from milegpo_plugin.config import CreditConfig
    from milegpo_plugin.credit import assign_credit
    from milegpo_plugin.local.algorithm import LocalMileGPO
    from milegpo_plugin.types import Trajectory

__version__ = "0.1.0"
__all__ = ["CreditConfig", "LocalMileGPO", "MileGPO", "Trajectory", "UserAgent", "assign_credit"]

_HOMES: Final[dict[str, str]] = {
    "CreditConfig": "milegpo_plugin.config",
    "LocalMileGPO": "milegpo_plugin.local.algorithm",
    "MileGPO": "milegpo_plugin.agl.verl.algorithm",
    "Trajectory": "milegpo_plugin.types",
    "UserAgent": "milegpo_plugin.agl.agent",
    "assign_credit": "milegpo_plugin.credit",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
