"""``run_ppo`` as a user calls it: the real Ray actor, trainer, gateway, controller and agents.

Only the GPU side is a stand-in (``data/cpu_stage.py``): a scripted model answers in place of vLLM,
and the actor's update is written to a file.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen2Config

from milegpo_plugin import assign_credit
from milegpo_plugin.files import read_trajectories

DATA = Path(__file__).parents[1] / "data"
TASKS = [{"corridor": 1}, {"corridor": 2}]


@pytest.fixture(scope="module")
def policy_folder(policy_name: str) -> str:
    """A folder that verl takes for a model: a tokenizer and a config, no weights."""
    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1}, unk_token="<pad>"))
    PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>").save_pretrained(
        policy_name
    )
    Qwen2Config(hidden_size=8, num_hidden_layers=1, num_attention_heads=1).save_pretrained(policy_name)
    return policy_name


def changes(gateway: str, key: str, policy: str, folder: Path) -> list[str]:
    """What a run on two CPUs changes in the example's config."""
    aggregator = "agentlightning.trace_aggregator"
    return [
        f"agentlightning.agl_base_url={gateway}",
        f"agentlightning.agl_key={key}",
        f"{aggregator}.trajectory_max_prompt_length=400",
        f"{aggregator}.trajectory_max_response_length=800",
        f"actor_rollout_ref.model.path={policy}",
        "actor_rollout_ref.rollout.n=4",
        "actor_rollout_ref.actor.ppo_mini_batch_size=1",
        "actor_rollout_ref.actor.use_kl_loss=false",
        "data.train_batch_size=2",
        "data.dataloader_num_workers=0",
        "trainer.device=cpu",
        "trainer.balance_batch=false",
        "trainer.logger=[file]",
        "trainer.resume_mode=disable",
        "trainer.test_freq=-1",
        "trainer.total_training_steps=1",
        "ray_kwargs.ray_init.address=local",
        "ray_kwargs.ray_init.num_cpus=2",
        "ray_kwargs.ray_init.include_dashboard=false",
        "ray_kwargs.ray_init.runtime_env.worker_process_setup_hook=cpu_stage.setup",
        f"milegpo.dump_dir={folder}",
    ]


@pytest.fixture(scope="module")
def trained(
    gateway: str,
    key: str,
    policy_folder: str,
    agent_files: tuple[str, str],
    _model_server: Any,
    tmp_path_factory: Any,
) -> Path:
    """The folder of one training step: ``update.pt``, ``log.jsonl`` and the dump."""
    folder = tmp_path_factory.mktemp("run")
    dice = random.Random(3)
    _model_server.policy = lambda messages: dice.choice(["east", "east", "west"])
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(DATA),
        "RAY_raylet_start_wait_time_s": "300",
        "STAGE_MODEL_URL": _model_server.base_url,
        "STAGE_UPDATE_FILE": str(folder / "update.pt"),
        "VERL_FILE_LOGGER_PATH": str(folder / "log.jsonl"),
    }
    arguments = [*agent_files, json.dumps(TASKS), *changes(gateway, key, policy_folder, folder)]
    run = subprocess.run(
        [sys.executable, DATA / "cpu_train.py", *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
    return folder


@pytest.fixture(scope="module")
def update(trained: Path) -> dict[str, Any]:
    return torch.load(trained / "update.pt", weights_only=False)


pytestmark = pytest.mark.timeout(900)


def test_the_actor_learns_from_the_advantages_of_assign_credit(trained: Path, update: dict[str, Any]) -> None:
    problems: list[Any] = []
    trajectories = list(read_trajectories(trained / "step_000001" / "trajectories.jsonl", problems.append))
    assert problems == []
    credit = assign_credit(trajectories)
    expected = {t.rollout_id: credit.advantages(index) for index, t in enumerate(trajectories)}
    assert len(expected) == 8
    share = update["response_mask"].sum(dim=-1)
    for row, rollout_id in enumerate(update["rollout_ids"]):
        values = update["advantages"][row][update["response_mask"][row].bool()]
        # The loss per_rollout_mean divides by the tokens of the rollout and by the rows of the batch.
        steps = values * share[row] * len(share)
        steps = torch.unique_consecutive(steps).tolist()
        distinct = [
            value
            for i, value in enumerate(expected[rollout_id])
            if i == 0 or value != expected[rollout_id][i - 1]
        ]
        assert steps == pytest.approx(distinct, abs=1e-5)


def test_the_run_registered_upstreams_losses_too(update: dict[str, Any]) -> None:
    assert {"per_rollout_mean", "cispo_per_rollout_mean"} <= set(update["losses"])


def test_the_log_of_the_trainer_has_the_figures_of_the_credit(trained: Path, update: dict[str, Any]) -> None:
    (line,) = (trained / "log.jsonl").read_text(encoding="utf-8").splitlines()
    metrics = json.loads(line)["data"]
    assert metrics["milegpo/rollouts"] == 8.0
    assert metrics["milegpo/outcome_reward"] == pytest.approx(metrics["training/reward"])
    assert 0 < metrics["milegpo/credit_share"] < 1
    assert update["token_level_scores"].dtype == torch.float32
