"""The learning benchmark: games are played as they are, and its table says what the runs did."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.learning import runs
from benchmarks.learning.games import Instance
from benchmarks.learning.params import Params, read_params
from benchmarks.learning.playing import Player
from benchmarks.learning.results import Results
from benchmarks.learning.runs import Job, all_jobs, train
from milegpo_plugin.agl.rollouts import Task
from milegpo_plugin.local.model import build_policy

HALL = Instance(
    7,
    ["a hall with a door", "a pit", "a garden"],
    [{"jump": 1, "open the door": 2, "wait": 0}, {}, {}],
)


@pytest.fixture
def params() -> Params:
    given = read_params()
    loop = {**given.train["train"], "iterations": 2, "tasks_per_iteration": 1, "rollouts_per_task": 4}
    return given.model_copy(update={"train": {**given.train, "train": loop}, "seeds": 2})


def test_every_rollout_ends_where_its_commands_lead(params: Params) -> None:
    config = params.config("grpo", 0)
    policy = build_policy(config.model, sample_texts=HALL.text_N, seed=0)
    player = Player(policy, config.server, {"7": HALL}, "Get out.", turns=3)
    collected = asyncio.run(
        player([Task("7", {})], repeats=32, validation=False, on_progress=lambda done: None)
    )
    rewards = {1: 0.0, 2: 1.0}
    for rollout in collected.trajectories:
        state = 0
        for step in rollout.steps:
            assert step.observation[0]["content"] == HALL.text_N[state]
            assert step.action is not None
            state = HALL.moves_N[state][step.action.text or ""]
        assert rollout.reward == rewards.get(state, 0.0)
        assert state or len(rollout.steps) == 3
    assert {rollout.reward for rollout in collected.trajectories} == {0.0, 1.0}


def test_a_run_trains_and_is_the_same_again(
    params: Params, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runs, "instances", lambda params, game: ([HALL], [HALL]))
    first, again = (
        train(params, Job("coin", "milegpo pcc", 0), tmp_path / name) for name in ("first", "again")
    )
    assert [record["iteration"] for record in first] == [0, 1, 2]
    assert all(record["learner/rows"] for record in first[1:])
    timed = {"seconds/collect", "seconds/agent", "seconds/credit", "seconds/update", "seconds/total"}
    timed |= {"seconds/validation", "learner/seconds"}
    for left, right in zip(first, again, strict=True):
        assert {k: v for k, v in left.items() if k not in timed} == {
            k: v for k, v in right.items() if k not in timed
        }


def record(iteration: int, success: float | None) -> dict[str, float | int | None]:
    seconds = {f"seconds/{part}": 1.0 for part in ("collect", "credit", "update")} if iteration else {}
    held_out = {"validation/success": 0.5} if iteration in (0, 2) else {}
    credit = {"credit/step_credit": 0.25, "learner/tokens": 600.0} if iteration else {}
    return {"iteration": iteration, "success": success, **seconds, **held_out, **credit}


def test_finished_runs_are_kept_and_not_run_again(params: Params, tmp_path: Path) -> None:
    results = Results.read(tmp_path / "learning.csv", params)
    job = Job("coin", "grpo", 1)
    results.add(job, [record(0, None), record(1, 0.25), record(2, 0.75)])
    kept = Results.read(tmp_path / "learning.csv", params)
    assert kept.jobs == {job}
    assert job in set(all_jobs(params))
    assert kept.curves("coin", "grpo", "success")[1].tolist() == [0.25, 0.75]
    others = params.model_copy(update={"training_instances": 3})
    assert Results.read(tmp_path / "learning.csv", others).jobs == set()


def test_the_table_compares_runs_of_the_same_seed(params: Params, tmp_path: Path) -> None:
    results = Results.read(tmp_path / "learning.csv", params)
    for seed in (0, 1):
        results.add(Job("coin", "grpo", seed), [record(0, None), record(1, 0.1 * seed), record(2, 0.5)])
        results.add(Job("coin", "gigpo", seed), [record(0, None), record(1, 0.1 * seed), record(2, 0.9)])
    results.write_report(tmp_path, "make bench-learning")
    text = (tmp_path / "learning.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith("| gigpo")]
    assert "+0.200 [+0.200, +0.200] *" in row
    assert (tmp_path / "learning.svg").stat().st_size > 1000


def test_the_report_says_how_fast_the_runs_were(params: Params, tmp_path: Path) -> None:
    results = Results.read(tmp_path / "learning.csv", params)
    results.add(Job("coin", "grpo", 0), [record(0, None), record(1, 0.5), record(2, 0.5)])
    results.write_report(tmp_path, "make bench-learning")
    text = (tmp_path / "learning.md").read_text(encoding="utf-8")
    assert "| coin | 1 [1, 1] | 600 [600, 600] | 600 [600, 600] | 33.3% | 33.3% | 33.3% |" in text
