from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def milegpo(tmp_path: Path) -> Run:
    """The command as a user runs it, in an empty folder."""

    def run(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "milegpo_plugin", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        if check:
            assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[[str, list[Any]], Path]:
    """Write JSON lines; a string is written as it is."""

    def write(name: str, lines: list[Any]) -> Path:
        path = tmp_path / name
        path.write_text(
            "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines),
            encoding="utf-8",
        )
        return path

    return write


@pytest.fixture
def rollouts() -> list[dict[str, Any]]:
    """One task, two rollouts that part in state ``hall``; one wins."""

    def step(state: str) -> dict[str, Any]:
        return {"state": state, "observation": [], "action": {"text": state, "tool_calls": []}}

    won = {"task_id": "t", "rollout_id": "r1", "reward": 1.0, "steps": [step("hall"), step("study")]}
    lost = {"task_id": "t", "rollout_id": "r2", "reward": 0.0, "steps": [step("hall"), step("cellar")]}
    return [won, lost]
