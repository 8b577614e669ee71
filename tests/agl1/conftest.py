"""The real gateway and local controller of Agent Lightning 1.0 around a scripted model server."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, HTTPException

HERE = Path(__file__).parent
AGENT = f"{HERE / 'data' / 'corridor_agent.py'}:play"
REWARD = f"{HERE / 'data' / 'corridor_agent.py'}:reward"
KEY = "test-key"


def tokens_of(text: str) -> list[int]:
    """A token for each byte: any text has ids, and equal prefixes have equal ids."""
    return list(text.encode())


def render(messages: list[dict[str, Any]]) -> str:
    """A chat template: every message ends with a separator that belongs to it."""
    parts = []
    for message in messages:
        said = message["content"] or ""
        calls = "".join(call["function"]["arguments"] for call in message.get("tool_calls") or ())
        parts.append(f"<{message['role']}>{said}{calls}</>")
    return "".join(parts)


class ScriptedModel:
    """An OpenAI-compatible server as vLLM is one, whose answers a test decides.

    ``policy`` maps the messages of a request to the direction that the model walks in.
    ``failures`` is the number of requests that are answered with 400 first.
    """

    def __init__(self) -> None:
        self.policy: Callable[[list[dict[str, Any]]], str] = lambda messages: "east"
        self.failures = 0
        self.requests: list[dict[str, Any]] = []
        self._numbers = itertools.count(1)
        self.base_url = ""

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(body)
        if self.failures:
            self.failures -= 1
            raise HTTPException(400, "context too long")
        number = next(self._numbers)
        arguments = json.dumps({"direction": self.policy(body["messages"])})
        prompt_ids = tokens_of(render(body["messages"]) + "<assistant>")
        token_ids = tokens_of(arguments + "</>")
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "move", "arguments": arguments},
        }
        logprobs = [{"token": "", "logprob": -0.5, "bytes": None, "top_logprobs": []} for _ in token_ids]
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "prompt_token_ids": prompt_ids,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "token_ids": token_ids,
                    "logprobs": {"content": logprobs},
                    "message": {"role": "assistant", "content": None, "tool_calls": [call]},
                }
            ],
            "usage": {
                "prompt_tokens": len(prompt_ids),
                "completion_tokens": len(token_ids),
                "total_tokens": len(prompt_ids) + len(token_ids),
            },
        }


@pytest.fixture(scope="session")
def _model_server() -> Iterator[ScriptedModel]:
    model = ScriptedModel()
    app = FastAPI()
    app.post("/v1/chat/completions")(model.complete)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    model.base_url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    yield model
    server.should_exit = True
    thread.join(timeout=10)


@pytest.fixture
def model(_model_server: ScriptedModel) -> ScriptedModel:
    """The scripted model, walking east."""
    _model_server.policy = lambda messages: "east"
    _model_server.failures = 0
    _model_server.requests.clear()
    return _model_server


@pytest.fixture(scope="session")
def policy_name(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of the policy: the trainer takes it for the folder of its model."""
    return str(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory, policy_name: str) -> Iterator[str]:
    """URL of ``agl-server`` with an ``agl-controller`` that runs agents as local processes."""
    folder = tmp_path_factory.mktemp("gateway")
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    with contextlib.ExitStack() as running:
        server = running.enter_context(
            _running(
                folder,
                "agl-server",
                "host=127.0.0.1",
                f"port={port}",
                f"key={KEY}",
                f"default_proxy.model_name={policy_name}",
            )
        )
        _wait_for(f"{url}/healthz", server)
        running.enter_context(
            _running(
                folder,
                "agl-controller",
                "runner_type=local",
                f"agl_server.url={url}",
                f"agl_server.key={KEY}",
                "local_runner.poll_interval=0.2",
                "local_runner.maximum_size=4",
            )
        )
        yield url


@contextlib.contextmanager
def _running(folder: Path, command: str, *overrides: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command of this environment, stopped at the end whatever happens in between."""
    script = Path(sys.executable).with_name(command)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (folder / f"{command}.log").open("wb") as log:
        process = subprocess.Popen([script, *overrides], cwd=folder, stdout=log, stderr=log, env=environment)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if process.poll() is not None:
            break
        try:
            if httpx.get(url, timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise RuntimeError(f"{url} does not answer")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def play(gateway: str, policy_name: str, model: ScriptedModel) -> Callable[..., list[Any]]:
    """Run tasks as the trainer does: ``play(tasks, rollouts=n)`` gives ``CompletedRollout`` objects."""
    from agentlightning.verl.agl_rollout_manager import AglRolloutManager

    from milegpo_plugin.agl.v1.agent import AGENT_CLASS

    def run(
        tasks: list[dict[str, Any]], *, rollouts: int = 1, agent: str = AGENT, reward: str | None = REWARD
    ) -> list[Any]:
        variables = {"MILEGPO_AGENT": agent, "MILEGPO_TASK": "input"}
        manager = AglRolloutManager(
            agl_base_url=gateway,
            agl_key=KEY,
            model=policy_name,
            step=1,
            train_rollout_n=rollouts,
            rollout_timeout_seconds=600,
            poll_interval_seconds=0.2,
            local_agent_class=AGENT_CLASS,
            local_env_map=variables | ({} if reward is None else {"MILEGPO_REWARD": reward}),
        )
        manager.delete_model()
        manager.register_model([model.base_url])
        columns = {name: [task[name] for task in tasks] for name in tasks[0]}
        return manager.enqueue_and_wait_until_completed(columns, is_train=True)

    return run


@pytest.fixture(scope="session")
def agent_files() -> tuple[str, str]:
    """The unmodified agent and its reward, as a user names them."""
    return AGENT, REWARD


@pytest.fixture(scope="session")
def key() -> str:
    """The key of the gateway."""
    return KEY
