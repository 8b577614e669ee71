"""A user's agent as it is, as the class that the local controller of Agent Lightning 1.0 starts.

The controller starts one process for each rollout and passes everything by environment;
:func:`milegpo_plugin.agl.v1.use_agent` writes the settings that do so.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final

import httpx

from milegpo_plugin import semconv
from milegpo_plugin.agl.play import environment, load_agent, openai_environment, outcome_of
from milegpo_plugin.errors import AgentError
from milegpo_plugin.loading import load_function

AGENT_CLASS: Final = "milegpo_plugin.agl.v1.agent:UserAgent"
AGENT: Final = "MILEGPO_AGENT"
REWARD: Final = "MILEGPO_REWARD"
TASK: Final = "MILEGPO_TASK"
BASE_URL: Final = "AGL_OPENAI_BASE_URL"
EVENT_URL: Final = "AGL_EVENT_URL"
KEY: Final = "AGL_KEY"

MODEL: Final = "auto"
"""The gateway puts the name of the policy in its place."""

_POST_SECONDS: Final = 30.0


class UserAgent:
    """One rollout of ``FILE.py:FUNCTION`` or ``FILE.py``; its outcome becomes a reward event.

    An agent that raises leaves an exception event and a failed rollout; one whose reward is
    unknown leaves no reward event.

    Raises:
        AgentError, InputNotFoundError: the agent or the reward cannot be loaded, or the process
            was not started by the controller with the settings of ``use_agent``.
    """

    def run(self) -> None:
        """Play the task of this process and post what came of it."""
        task = json.loads(_variable(TASK))
        reward = os.environ.get(REWARD)
        try:
            play, score = load_agent(_variable(AGENT)), load_function(reward) if reward else None
            key = os.environ.get(KEY)
            with environment(openai_environment(_variable(BASE_URL), model=MODEL, api_key=key)):
                result = play(task)
            outcome = outcome_of(task, result, score)
        except Exception as error:
            post_event(semconv.AGL_EXCEPTION_EVENT, {"type": type(error).__name__, "message": str(error)})
            raise
        if outcome is not None:
            post_event(semconv.AGL_REWARD_EVENT, {"value": outcome})


def post_event(event_type: str, data: dict[str, Any]) -> None:
    """Append an event to the rollout of this process; an agent may use it for events of its own.

    Raises:
        AgentError: the process is no rollout.
        httpx.HTTPError: the gateway does not take the event.
    """
    response = httpx.post(
        _variable(EVENT_URL),
        json={"event_type": event_type, "data": data},
        headers={"Authorization": f"Bearer {os.environ.get(KEY, '')}"},
        timeout=_POST_SECONDS,
    )
    response.raise_for_status()


def _variable(name: str) -> str:
    if name not in os.environ:
        raise AgentError(f"{name} is not set: this class is run by agl-controller with runner_type=local")
    return os.environ[name]
