"""What verl and the credit ask of vLLM is there in the release that the extra ``gpu`` installs.

No engine starts: it would need a GPU. Options are parsed by vLLM, put together by verl.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
import vllm.platforms
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMHttpServerBase
from vllm.platforms.cpu import CpuPlatform

from milegpo_plugin import MileGPO

RECIPES = Path(__file__).parents[2] / "examples" / "verl"


@pytest.fixture(autouse=True)
def _platform_without_gpu(monkeypatch):
    monkeypatch.setattr(vllm.platforms, "_current_platform", CpuPlatform())


def test_the_release_is_the_one_that_the_docs_name():
    docs = (RECIPES.parents[1] / "docs" / "gpu.md").read_text(encoding="utf-8")
    for package in ("torch", "vllm", "verl", "agentlightning"):
        assert f"| {package} | {version(package)} |" in docs


def test_replies_can_carry_token_ids():
    from vllm.entrypoints.openai import protocol

    assert "return_token_ids" in protocol.ChatCompletionRequest.model_fields
    assert "prompt_token_ids" in protocol.ChatCompletionResponse.model_fields
    assert "token_ids" in protocol.ChatCompletionResponseChoice.model_fields


@pytest.mark.parametrize("name", ["alfworld", "webshop", "scienceworld", "your_langgraph_agent"])
def test_vllm_takes_the_options_that_verl_makes_of_a_recipe(name):
    arguments = server_arguments(MileGPO.from_file(RECIPES / f"{name}.yaml").config)
    assert arguments.model == "Qwen/Qwen2.5-1.5B-Instruct"
    assert arguments.enable_sleep_mode
    is_tool_calling = name == "your_langgraph_agent"
    assert arguments.enable_auto_tool_choice == is_tool_calling
    assert arguments.tool_call_parser == ("hermes" if is_tool_calling else None)


def server_arguments(config):
    """The parsed command line with which verl's server class would start vLLM."""
    launched = []

    async def run_server(arguments):
        launched.append(arguments)

    server = vLLMHttpServerBase.__new__(vLLMHttpServerBase)
    server.config = rollout = omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
    rollout.max_model_len = rollout.prompt_length + rollout.response_length  # as its __init__ does
    model = config.actor_rollout_ref.model.path
    server.model_config = SimpleNamespace(local_path=model, trust_remote_code=False, lora_rank=0)
    server.workers, server.replica_rank, server.node_rank = [], 0, 0
    server.nnodes = server.gpus_per_node = 1
    server.run_server = run_server
    asyncio.run(server.launch_server())
    return launched[0]
