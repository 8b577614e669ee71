"""Play one task with a user's agent as it is. Imports no platform, so every release can use it.

The agent's file is never changed: endpoint, key and model reach it by environment, its task
as an argument, and what it returns (or prints, for a script) goes to the reward function.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import io
import json
import os
import queue
import runpy
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, cast

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
    """A callable that plays one task, for a function (plain or ``async``) or for a script.

    It may be called where an event loop runs: the agent does not notice the loop, so that it can
    start its own with ``asyncio.run`` or a framework's ``run_sync``.
    """
    path, name = split_target(target)
    play = functools.partial(run_script, str(require_file(path))) if name is None else load_function(target)
    return lambda task: _without_loop(lambda: _finish(play(task)))


def _finish(result: Any) -> Any:
    """The result of an ``async`` agent, or any other result as it is."""
    return asyncio.run(cast("Coroutine[Any, Any, Any]", result)) if inspect.iscoroutine(result) else result


def _without_loop(work: Callable[[], Any]) -> Any:
    """Call ``work`` here, or, where an event loop runs, in the thread that plays every rollout of this process."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    done: Future[Any] = Future()
    context = contextvars.copy_context()
    _stage().put((lambda: context.run(work), done))
    return done.result()


@functools.cache
def _stage() -> queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]]:
    """Work for one thread: what an agent keeps between rollouts may be bound to the thread that made it."""
    calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
    threading.Thread(target=_serve, args=(calls,), name="agent", daemon=True).start()
    return calls


def _serve(calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]]) -> None:
    while True:
        work, done = calls.get()
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)


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
