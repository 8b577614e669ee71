"""``milegpo train`` as a user runs it: real platform, policy server and learner, a small game."""

from __future__ import annotations

import gzip
import json

import pytest
import yaml

KEPT = ("config.yaml", "metrics.jsonl", "platform.log", "report.html", "checkpoints/last", "checkpoints/best")


def read(path):
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def test_training_keeps_everything_that_happened(workspace):
    done = workspace.train()
    assert done.returncode == 0, done.stderr
    run = workspace.path / "run"
    assert all((run / name).exists() for name in KEPT)
    metrics = workspace.metrics()
    assert [m["iteration"] for m in metrics] == [0, 1, 2]
    assert [m.get("validation/rollouts") for m in metrics] == [3, None, 3]
    assert all(m["learner/ratio_max_dev"] < 1e-3 for m in metrics[1:])
    rollouts, credit = read(run / "trajectories/0001.jsonl.gz"), read(run / "credit/0001.jsonl.gz")
    assert len(rollouts) == 8
    assert all(t["reward"] in (0.0, 1.0) for t in rollouts)
    assert all(s["response_token_ids"] and s["logprobs"] for t in rollouts for s in t["steps"])
    assert len(credit) == sum(len(t["steps"]) for t in rollouts)
    skipped = sum(count for name, count in metrics[1].items() if name.startswith("learner/skipped_"))
    assert metrics[1]["learner/rows"] + skipped == len(credit)
    for word in ("first", "best", "last", "run directory"):
        assert word in done.stdout


def test_rloo_and_a_group_filter_are_settings_of_a_run(workspace):
    """The rows of a task that nobody solves are left out, unless no other group teaches anything."""
    workspace.write_tasks([{"task_id": "house"}, {"task_id": "lost", "lost": True}])
    (workspace.path / "reward.py").write_text(
        "def score(task, result):\n    return float(result['won'] and not task.get('lost'))\n",
        encoding="utf-8",
    )
    with (workspace.path / "train.yaml").open("a", encoding="utf-8") as config:
        config.write("credit: {estimator: rloo, filter_groups: outcome}\n")
    done = workspace.train()
    assert done.returncode == 0, done.stderr
    kept = yaml.safe_load((workspace.path / "run/config.yaml").read_text(encoding="utf-8"))["credit"]
    assert (kept["estimator"], kept["filter_groups"]) == ("rloo", "outcome")
    for trained in workspace.metrics()[1:]:
        silent = trained["credit/groups_without_signal"]
        assert silent >= 1
        assert trained["skipped"].get("group without signal", 0) == (4 if silent == 1 else 0)


def test_ctrl_c_keeps_a_checkpoint_and_resume_goes_on(workspace):
    config = workspace.path / "train.yaml"
    config.write_text(
        config.read_text(encoding="utf-8").replace("iterations: 2", "iterations: 6"), encoding="utf-8"
    )
    stopped = workspace.interrupt_after(1, "--tensorboard")
    assert stopped.returncode == 130, stopped.stderr
    assert "--resume goes on" in stopped.stdout
    resumed = workspace.train("--resume", "--tensorboard")
    assert resumed.returncode == 0, resumed.stderr
    assert [m["iteration"] for m in workspace.metrics()] == list(range(7))
    losses = [(m["iteration"], pytest.approx(m["learner/loss"])) for m in workspace.metrics()[1:]]
    assert workspace.curve("learner/loss") == losses


def test_one_task_that_raises_costs_only_its_rollouts(workspace):
    workspace.write_tasks([{"task_id": "good"}, {"task_id": "bad", "raises": True}])
    done = workspace.train()
    assert done.returncode == 0, done.stderr
    trained = workspace.metrics()[1]
    assert trained["rollouts"] == 8
    assert trained["scored"] == 4
    assert trained["skipped"]["the agent raised RuntimeError: the game is broken"] == 4


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"raises": True}, "the agent raised RuntimeError: the game is broken"),
        ({"silent": True}, "no model call"),
    ],
)
def test_when_no_rollout_can_be_used_one_line_says_why(workspace, task, reason):
    workspace.write_tasks([task])
    done = workspace.train()
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert reason in line


def test_a_policy_server_that_cannot_listen_ends_the_run_with_one_line(workspace):
    config = workspace.path / "train.yaml"
    taken = config.read_text(encoding="utf-8").replace("max_response_tokens: 64", "host: 192.0.2.1")
    config.write_text(taken, encoding="utf-8")
    done = workspace.train()
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "policy server cannot listen on 192.0.2.1" in line


def test_a_dry_run_prints_the_settings_and_starts_nothing(workspace):
    done = workspace.train("--dry-run", "--runners", "7")
    assert done.returncode == 0, done.stderr
    plan = yaml.safe_load(done.stdout)
    assert plan["train"]["runners"] == 7
    assert plan["train"]["rollouts_per_task"] == 4
    assert "3 training tasks, 3 validation tasks" in done.stdout
    assert not (workspace.path / "run").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--backend", "gpu"), "--backend must be local or verl, got 'gpu'"),
        (("--backend", "verl", "--resume"), "resuming is a setting of verl: trainer.resume_mode"),
        (("--backend", "verl", "--tensorboard"), "TensorBoard is a setting of verl: trainer.logger"),
        (("--backend", "verl", "--texts", "tasks.jsonl"), "--texts makes the tokenizer of the tiny model"),
        (("--backend", "verl"), "MileGPO needs verl: pip install"),
    ],
)
def test_a_backend_that_cannot_do_it_says_so_in_one_line(workspace, options, reason):
    done = workspace.train(*options)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert reason in line
