from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

REPOSITORY = Path(__file__).parents[2]
CONFIG = """
train: {iterations: 2, tasks_per_iteration: 2, rollouts_per_task: 2, validate_every: 2, runners: 1}
model: {tiny: {hidden_size: 32, intermediate_size: 64, layers: 1, heads: 2, max_positions: 8192}}
server: {max_response_tokens: 48, max_prompt_tokens: 8000, auto_tool_choice: required}
threads: 1
"""


class Training:
    """A run of ``milegpo train`` with two iterations of two tasks, two rollouts each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.agent = ""

    def run(
        self,
        agent: str,
        reward: str | None,
        tasks: list[dict],
        env: dict[str, str],
        *,
        config: str = CONFIG,
        timeout: int = 280,
    ) -> None:
        (self.folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
        (self.folder / "train.yaml").write_text(config)
        (self.folder / "reward.py").write_text(reward or "")
        command = [sys.executable, "-m", "milegpo_plugin", "train", "--plain", "--run-dir", "run"]
        command += ["--tasks", "tasks.jsonl", "--config", "train.yaml"]
        command += ["--agent", f"{REPOSITORY / 'agents' / agent}:play"]
        command += ["--reward", "reward.py:score"] if reward else []
        done = subprocess.run(
            command, cwd=self.folder, env=os.environ | env, capture_output=True, text=True, timeout=timeout
        )
        assert done.returncode == 0, done.stderr + done.stdout

    def metrics(self) -> list[dict[str, Any]]:
        text = (self.folder / "run/metrics.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def trajectories(self, iteration: int) -> list[dict[str, Any]]:
        with gzip.open(self.folder / f"run/trajectories/{iteration:04}.jsonl.gz", "rt") as stream:
            return [json.loads(line) for line in stream]


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(tmp_path)


@pytest.fixture(scope="session")
def games_url() -> Iterator[str]:
    """The tool server, as a user starts it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = REPOSITORY / "examples/environments/serve.py"
    process = subprocess.Popen([sys.executable, str(script), "--port", str(port)])
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(url, timeout=5)
        except httpx.TransportError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError("the tool server does not answer")
