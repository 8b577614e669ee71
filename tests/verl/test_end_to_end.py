"""Two training steps with the whole platform: see ``end_to_end.py`` for what is real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config

HERE = Path(__file__).parent
LIMIT_SECONDS = 1500


def save_model_folder(folder: Path) -> None:
    """Tokenizer and config; the weights are the stand-in's."""
    tokenizer = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "room": 2}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
    fast.save_pretrained(folder)
    Qwen2Config(vocab_size=300, hidden_size=32).save_pretrained(folder)


@dataclass
class Run:
    """What a training run left behind."""

    metrics: list[dict[str, Any]]
    dump: Path
    log: str


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    folder = tmp_path_factory.mktemp("end_to_end")
    save_model_folder(folder / "model")
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE),
        "VERL_FILE_LOGGER_PATH": str(folder / "metrics.jsonl"),
        "RAY_USAGE_STATS_ENABLED": "0",
        "HF_HUB_OFFLINE": "1",
    }
    command = [
        sys.executable,
        "-W",
        "ignore",
        str(HERE / "end_to_end.py"),
        str(folder / "model"),
        str(folder / "dump"),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=LIMIT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return Run([json.loads(line)["data"] for line in lines], folder / "dump", done.stdout + done.stderr)


@pytest.mark.timeout(LIMIT_SECONDS + 60)
def test_an_unmodified_agent_is_trained_through_proxy_tracer_and_ray(run):
    assert [metrics["training/global_step"] for metrics in run.metrics] == [1, 2]
    for metrics in run.metrics:
        assert metrics["training/n_rollouts_w_trace"] == metrics["training/n_rollouts_w_reward"] == 8
        assert metrics["milegpo/rows"] == metrics["milegpo/steps"] > 8
        assert metrics["milegpo/coverage"] > 0.5
        assert metrics["test/moved"] > 0
        assert 0 < metrics["milegpo/credit_share"] < 0.5
        seconds, share = metrics["milegpo/credit_seconds"], metrics["milegpo/credit_share"]
        print(f"credit took {seconds:.4f} s, {share:.2%} of a step of {metrics['timing_s/step']:.1f} s")
    assert run.metrics[-1]["val/milegpo/success_rate"] in (0.0, 0.5, 1.0)


@pytest.mark.timeout(LIMIT_SECONDS + 60)
def test_the_dump_of_a_step_has_every_rollout_with_its_token_ids(run):
    lines = (run.dump / "step_000001" / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    trajectories = [json.loads(line) for line in lines]
    assert len(trajectories) == 8
    assert len({trajectory["task_id"] for trajectory in trajectories}) == 2
    for trajectory in trajectories:
        for step in trajectory["steps"]:
            text = step["observation"][-1]["content"]
            assert step["prompt_token_ids"] == [2 + byte for byte in text.encode()]
            assert step["response_token_ids"] == [2 + byte for byte in step["action"]["text"].encode()]
