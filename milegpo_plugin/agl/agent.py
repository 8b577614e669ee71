"""Run a user's agent as it is, one rollout at a time, inside a platform runner.

The agent's file is never changed: endpoint, key and model reach it by environment, its task
as an argument, and what it returns (or prints, for a script) goes to the reward function.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentlightning.emitter import emit_exception
from agentlightning.litagent import LitAgent
from agentlightning.types import LLM, NamedResources, Rollout

from milegpo_plugin.errors import AgentError
from milegpo_plugin.loading import load_function, require_file, split_target

RESOURCE = "main_llm"
"""Name under which the algorithm publishes its endpoint, as upstream's examples do."""


def agent_environment(llm: LLM) -> dict[str, str]:
    """The variables by which common SDKs find an OpenAI-compatible endpoint."""
    key = llm.api_key or "unused"
    return {
        "OPENAI_BASE_URL": llm.endpoint,
        "OPENAI_API_BASE": llm.endpoint,
        "OPENAI_API_KEY": key,
        "OPENAI_MODEL": llm.model,
        "OPENAI_DEFAULT_MODEL": llm.model,
    }


@contextlib.contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables for one rollout and put the old ones back."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
            with environment(agent_environment(llm)):
                result = self._play(task)
            return self._outcome(task, result)
        except Exception as error:
            emit_exception(error)
            raise

    def _outcome(self, task: dict[str, Any], result: Any) -> float | None:
        if self._score is not None:
            result = self._score(task, result)
        if isinstance(result, bool | int | float):
            return float(result)
        return None


def load_agent(target: str) -> Callable[[dict[str, Any]], Any]:
    """A callable that plays one task, for a function or for a script."""
    path, name = split_target(target)
    if name is not None:
        return load_function(target)
    file = str(require_file(path))
    return lambda task: run_script(file, task)


def run_script(file: str, task: dict[str, Any]) -> str:
    """Run ``file`` as ``__main__`` with the task in ``argv[1]``; return what it printed.

    Raises:
        AgentError: the script exits with a status other than 0.
    """
    output = io.StringIO()
    argv = sys.argv
    sys.argv = [file, json.dumps(task, ensure_ascii=False)]
    try:
        with contextlib.redirect_stdout(output):
            runpy.run_path(file, run_name="__main__")
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise AgentError(f"{file}: exited with {stop.code!r}, must exit with 0") from stop
    finally:
        sys.argv = argv
    return output.getvalue()
