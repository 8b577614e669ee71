"""A user's agent as it is, one rollout at a time, inside a runner of Agent Lightning 0.3."""

from __future__ import annotations

from typing import Any

from agentlightning.emitter import emit_exception
from agentlightning.litagent import LitAgent
from agentlightning.types import LLM, AttemptedRollout, NamedResources, Rollout

from milegpo_plugin.agl.play import environment, load_agent, openai_environment, outcome_of
from milegpo_plugin.errors import AgentError
from milegpo_plugin.loading import load_function

RESOURCE = "main_llm"
"""Name under which the algorithm publishes its endpoint, as upstream's examples do."""


class UserAgent(LitAgent[dict[str, Any]]):
    """A user's function or script as a platform agent.

    Args:
        agent: ``FILE.py:FUNCTION`` (called with the task), or ``FILE.py`` (run as a script with
            the task as JSON in ``argv[1]``; its standard output is the result).
        reward: ``FILE.py:FUNCTION``, called as ``reward(task, result)``; None when the agent
            itself returns the reward or emits it. It may return None for "unknown".

    Raises:
        InputNotFoundError, AgentError: the agent or the reward cannot be loaded.
    """

    def __init__(self, agent: str, reward: str | None = None) -> None:
        super().__init__()
        self.agent = agent
        self.reward = reward
        self._play = load_agent(agent)
        self._score = load_function(reward) if reward else None

    def rollout(self, task: dict[str, Any], resources: NamedResources, rollout: Rollout) -> float | None:
        """Play one task; the returned reward becomes the rollout's final reward."""
        llm = next((r for r in resources.values() if isinstance(r, LLM)), None)
        if llm is None:
            raise AgentError(f"rollout {rollout.rollout_id}: the algorithm published no LLM resource")
        try:
            with environment(
                openai_environment(_base_url(llm, rollout), model=llm.model, api_key=llm.api_key)
            ):
                result = self._play(task)
            return outcome_of(task, result, self._score)
        except Exception as error:
            emit_exception(error)
            raise


def _base_url(llm: LLM, rollout: Rollout) -> str:
    """The endpoint of this attempt: the platform's proxy files each call under the ids in its URL."""
    attempted = isinstance(rollout, AttemptedRollout)
    ids = (rollout.rollout_id, rollout.attempt.attempt_id) if attempted else (None, None)
    return str(llm.get_base_url(*ids))
