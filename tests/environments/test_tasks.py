"""Task files of the environments."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples/environments/tasks.py"


def write(folder: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *options, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)


def read(folder: Path, split: str) -> list[dict]:
    return [json.loads(line) for line in (folder / f"{split}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("environment", ["coin", "mapreader", "cookingworld", "webshop"])
def test_no_unseen_task_is_trained_on(tmp_path, environment):
    done = write(tmp_path, environment, "--train", "12", "--unseen", "7")
    assert done.returncode == 0, done.stderr
    train, unseen = read(tmp_path, "train"), read(tmp_path, "unseen")
    assert (len(train), len(unseen)) == (12, 7)
    assert len({task["task_id"] for task in train + unseen}) == 19
    assert {task["environment"] for task in train + unseen} == {environment}


def test_alfworld_s_games_are_found_in_its_own_data(tmp_path):
    for split, trial in (("train", "a"), ("valid_seen", "b"), ("valid_unseen", "c")):
        game = tmp_path / "json_2.1.1" / split / "pick-Mug-Desk-1" / trial / "game.tw-pddl"
        game.parent.mkdir(parents=True)
        game.write_text("{}")
    done = write(tmp_path / "out", "alfworld", ALFWORLD_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert [task["task_id"] for task in read(tmp_path / "out", "train")] == ["pick-Mug-Desk-1-a"]
    assert [task["task_id"] for task in read(tmp_path / "out", "unseen")] == ["pick-Mug-Desk-1-c"]


def test_without_any_games_one_line_says_what_to_pass(tmp_path):
    done = write(tmp_path, "alfworld")
    assert done.returncode == 2
    assert "pass --games FOLDER, or set ALFWORLD_DATA" in done.stderr
