"""The recipes compose, are what they claim to be, and plan without a GPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from milegpo_plugin import CreditConfig, MileGPO
from milegpo_plugin.agl.verl.settings import RunFile
from milegpo_plugin.errors import ConfigError

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "examples" / "verl"


@pytest.mark.parametrize(("name", "preset"), [("alfworld", "alfworld"), ("webshop", "webshop")])
def test_the_papers_recipes_have_the_papers_settings(name, preset):
    algorithm = MileGPO.from_file(RECIPES / f"{name}.yaml")
    config, actor = algorithm.config, algorithm.config.actor_rollout_ref.actor
    assert config.actor_rollout_ref.model.path == "Qwen/Qwen2.5-1.5B-Instruct"
    assert (config.data.train_batch_size, config.actor_rollout_ref.rollout.n) == (16, 8)
    assert config.trainer.total_training_steps == 300
    assert (actor.optim.lr, actor.use_kl_loss, actor.kl_loss_coef) == (1e-6, True, 0.01)
    expected = CreditConfig.preset(preset, states={"pattern": preset})
    assert algorithm.settings.credit == expected


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("alfworld", "about 2560 a step, at most 6400 (one model call each)"),
        ("webshop", "about 1024 a step, at most 1920 (one model call each)"),
        ("scienceworld", "about 2560 a step, at most 3840 (one model call each)"),
        (
            "your_langgraph_agent",
            "about 128 a step (one conversation each, more where a history is rewritten)",
        ),
    ],
)
def test_every_recipe_plans_its_rows_and_names_what_is_missing(name, rows):
    plan = MileGPO.from_file(RECIPES / f"{name}.yaml").plan(5410)
    lines = dict(plan.lines)
    assert lines["rows"] == rows
    assert lines["rollouts"] == "16 tasks × 8 = 128 a step"
    assert lines["steps"] == "300 (5410 tasks)"
    assert "verl 0.6.1" in lines["versions"]
    lacks_vllm = importlib.util.find_spec("vllm") is None
    assert any(item.startswith("vllm: pip install") for item in plan.missing) == lacks_vllm


def test_a_dry_run_prints_the_plan_and_starts_nothing():
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(RECIPES / "train_webshop.py"), "--dry-run"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=240,
        check=True,
    )
    assert "credit     milegpo (" in done.stdout
    assert "rows       about 1024 a step" in done.stdout
    assert "updates    mini-batches of 64 rows, about 16 a step" in done.stdout
    assert "objective  learning rate 1e-06, clip 0.2/0.2, KL loss 0.01 (low_var_kl)" in done.stdout


def test_arguments_win_over_the_file():
    algorithm = MileGPO.from_file(RECIPES / "webshop.yaml", estimator="grpo", write_back=True)
    assert algorithm.settings.credit.estimator == "grpo"
    assert algorithm.settings.credit.norm == "mean"
    assert algorithm.settings.write_back


def test_a_run_file_with_an_unknown_name_is_refused(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("verl: {}\ncredits: webshop\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"run\.yaml: credits: extra inputs are not permitted"):
        RunFile.read(file)


def test_the_train_command_plans_a_run_on_gpus(tmp_path):
    (tmp_path / "agent.py").write_text("def play(task):\n    return 1.0\n", encoding="utf-8")
    (tmp_path / "tasks.jsonl").write_text('{"task_id": "a"}\n', encoding="utf-8")
    named = ["--agent", "agent.py:play", "--tasks", "tasks.jsonl", "--run-dir", "runs/gpu"]
    done = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "milegpo_plugin", "train", "--backend", "verl"),
            *(*named, "--config", str(RECIPES / "webshop.yaml"), "--dry-run", "--plain"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "rollouts   16 tasks × 8 = 128 a step" in done.stdout
    assert f"dump       {tmp_path / 'runs/gpu'}" in done.stdout
    assert not (tmp_path / "runs").exists()
