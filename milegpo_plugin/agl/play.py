"""Play one task with a user's agent as it is. Imports no platform, so every release can use it.

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

from milegpo_plugin.errors import AgentError
from milegpo_plugin.loading import load_function, require_file, split_target

Play = Callable[[dict[str, Any]], Any]
Score = Callable[[dict[str, Any], Any], Any]


def openai_environment(base_url: str, *, model: str, api_key: str | None) -> dict[str, str]:
    """The variables by which common SDKs find an OpenAI-compatible endpoint."""
    return {
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_BASE": base_url,
        "OPENAI_API_KEY": api_key or "unused",
        "OPENAI_MODEL": model,
        "OPENAI_DEFAULT_MODEL": model,
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


def load_agent(target: str) -> Play:
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


def outcome_of(task: dict[str, Any], result: Any, score: Score | None) -> float | None:
    """The reward of a played task: what ``score`` gives, else the result itself when it is a number."""
    value = result if score is None else score(task, result)
    return float(value) if isinstance(value, bool | int | float) else None
