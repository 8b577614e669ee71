"""Rollouts in files, and what one process makes of them."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from milegpo_plugin import assign_credit
from milegpo_plugin.files import read_input


def make_rollouts(groups: int, seed: int = 0) -> list[dict]:
    """Random walks; some failed, some without outcome, some of two attempts, some groups all alike."""
    rng = random.Random(seed)
    made = []
    for group in range(groups):
        kind = group % 6
        for number in range(rng.randint(1, 8)):
            texts = [f"room {rng.randrange(6)}" for _ in range(rng.randint(1, 9))]
            steps = [
                {"observation": [{"role": "tool", "content": text}], "action": {"text": rng.choice("ab")}}
                for text in texts
            ]
            reward = {0: 1.0, 1: None}.get(kind, float(rng.random() < 0.5))
            rollout = {
                "task_id": f"task {group}",
                "rollout_id": f"r{number}",
                "reward": reward,
                "steps": steps,
            }
            if kind == 2 and number == 0:
                rollout |= {"reward": None}
            if kind == 3:
                rollout |= {"flags": ["failed"], "reward": None}
            if kind == 4:
                steps[-1] |= {"reward": 0.25, "prompt_token_ids": [1], "response_token_ids": [2]}
                made.append({**rollout, "attempt_id": "1", "reward": 0.5})
                rollout |= {"attempt_id": "2"}
            made.append(rollout)
    return made


@pytest.fixture
def write(tmp_path):
    """Deals the rollouts out to files, in any order, one of them gzipped."""

    def deal(rollouts: list[dict], files: int = 3, seed: int = 1) -> list[Path]:
        shuffled = random.Random(seed).sample(rollouts, len(rollouts))
        paths = []
        for number in range(files):
            text = "".join(json.dumps(line) + "\n" for line in shuffled[number::files]).encode()
            path = tmp_path / f"rollouts{number}.jsonl{'.gz' if number == 0 else ''}"
            path.write_bytes(gzip.compress(text) if number == 0 else text)
            paths.append(path)
        return paths

    return deal


@pytest.fixture
def out(tmp_path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def lines_of(folder: Path, kind: str) -> list[dict]:
    """The lines of all parts, tasks in order; each part must be in order already."""
    lines = []
    for path in sorted(folder.glob(f"{kind}-*.jsonl")):
        part = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert [line["task_id"] for line in part] == sorted(line["task_id"] for line in part)
        lines += part
    return sorted(lines, key=lambda line: line["task_id"])


def assert_same_as_one_process(result, folder, paths, config=None, options=None):
    found = read_input(paths, options=options)
    credit = assign_credit(found.trajectories, config)
    assert lines_of(folder, "credit") == list(credit.step_records())
    assert lines_of(folder, "nodes") == list(credit.node_records())
    assert result.metrics == credit.metrics()
    assert Counter(result.skipped) == Counter([*found.skipped, *credit.skipped])
    assert result.notes == found.notes
    assert result.rollouts == len(found.trajectories)


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "milegpo_plugin", "credit", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="session")
def offline():
    """Functions of these tests."""
    return SimpleNamespace(
        make=make_rollouts, lines=lines_of, assert_same=assert_same_as_one_process, run=run
    )
