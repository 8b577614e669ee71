from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

AGENT = """
import json, os
from openai import OpenAI

ROOMS = {"hall": ["study", "cellar"], "study": ["garden", "hall"], "cellar": ["hall"]}

def play(task):
    if task.get("raises"):
        raise RuntimeError("the game is broken")
    if task.get("silent"):
        return {"won": False}
    client, room = OpenAI(), "hall"
    messages = [{"role": "system", "content": "Find the garden."}, {"role": "user", "content": "You are in the hall."}]
    for _ in range(4):
        tool = {"type": "function", "function": {"name": "go", "parameters": {"type": "object",
            "properties": {"room": {"type": "string", "enum": ROOMS[room]}}, "required": ["room"]}}}
        message = client.chat.completions.create(model=os.environ["OPENAI_MODEL"], messages=messages,
            tools=[tool], tool_choice="required").choices[0].message
        call = message.tool_calls[0]
        room = json.loads(call.function.arguments)["room"]
        messages += [message.model_dump(include={"role", "content", "tool_calls"}),
            {"role": "tool", "tool_call_id": call.id, "content": f"You are in the {room}."}]
        if room == "garden":
            break
    return {"won": room == "garden"}
"""
REWARD = "def score(task, result):\n    return float(result['won'])\n"
CONFIG = """
train: {iterations: 2, tasks_per_iteration: 2, rollouts_per_task: 4, validate_every: 2, runners: 1}
model: {tiny: {hidden_size: 32, intermediate_size: 64, layers: 1, heads: 2}}
server: {max_response_tokens: 64}
threads: 1
"""


class Workspace:
    """A user's folder: agent, reward, tasks, config; and the command run in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "walker.py").write_text(AGENT, encoding="utf-8")
        (path / "reward.py").write_text(REWARD, encoding="utf-8")
        (path / "train.yaml").write_text(CONFIG, encoding="utf-8")
        self.write_tasks([{"task_id": f"house-{i}"} for i in range(3)])

    def write_tasks(self, tasks: list[dict]) -> None:
        text = "".join(json.dumps(task) + "\n" for task in tasks)
        (self.path / "tasks.jsonl").write_text(text, encoding="utf-8")

    def command(self, *options: str) -> list[str]:
        named = ["--agent", "walker.py:play", "--reward", "reward.py:score", "--tasks", "tasks.jsonl"]
        rest = [
            "--validation",
            "tasks.jsonl",
            "--config",
            "train.yaml",
            "--run-dir",
            "run",
            "--plain",
            *options,
        ]
        return [sys.executable, "-m", "milegpo_plugin", "train", *named, *rest]

    def train(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = self.command(*options)
        return subprocess.run(command, cwd=self.path, capture_output=True, text=True, timeout=280)

    def interrupt_after(self, iteration: int, *options: str) -> subprocess.CompletedProcess[str]:
        """Press Ctrl-C once the given iteration is complete."""
        process = subprocess.Popen(
            self.command(*options),
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's job ignores it
        )
        while process.poll() is None and not any(m["iteration"] == iteration for m in self.metrics()):
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def metrics(self) -> list[dict]:
        path = self.path / "run" / "metrics.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def curve(self, name: str) -> list[tuple[int, float]]:
        """Step and value of a name, as TensorBoard reads them."""
        events = EventAccumulator(str(self.path / "run" / "tensorboard"))
        events.Reload()
        return [(event.step, event.value) for event in events.Scalars(name)]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)
