"""Agent Lightning 1.0: gateway events → trajectories → credit → the rows of its verl trainer.

``configure`` prepares the trainer's config, ``use_agent`` lets the local controller run an agent
as it is, and ``post_event`` adds an event to the rollout of an agent's process. Importing this
package loads neither torch nor verl nor agentlightning.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from milegpo_plugin.agl.v1.agent import post_event
    from milegpo_plugin.agl.v1.trainer_config import configure, use_agent

__all__ = ["configure", "post_event", "use_agent"]

_HOMES: Final[dict[str, str]] = {
    "configure": "milegpo_plugin.agl.v1.trainer_config",
    "post_event": "milegpo_plugin.agl.v1.agent",
    "use_agent": "milegpo_plugin.agl.v1.trainer_config",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
