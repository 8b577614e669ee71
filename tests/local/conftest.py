"""A tiny policy, a live server, and small helpers as fixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from openai import OpenAI
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from milegpo_plugin.local.chat import CHATML_TEMPLATE
from milegpo_plugin.local.model import Policy, build_policy
from milegpo_plugin.local.protocol import ChatRequest
from milegpo_plugin.local.requests import Job, prepare
from milegpo_plugin.local.sampler import Batch, Completion, Row
from milegpo_plugin.local.server import PolicyServer
from milegpo_plugin.local.settings import LoraSettings, ModelSettings, ServerSettings, TinyModelSettings
from milegpo_plugin.rows import Row as TrainingRow
from milegpo_plugin.rows import RowBatch

SAMPLE_TEXTS = (
    "You are in the kitchen. To the North you see a closed door. To the East you see the pantry.",
    "act command move direction north south east west take item coin coins say query",
)
TINY = ModelSettings(
    tiny=TinyModelSettings(hidden_size=32, intermediate_size=64, heads=2, max_positions=512), device="cpu"
)

Tools = list[dict[str, Any]]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_settings() -> ModelSettings:
    return TINY


@pytest.fixture
def make_policy() -> Callable[..., Policy]:
    """A fresh tiny policy; equal seeds give equal weights."""
    return lambda seed=0: build_policy(TINY, sample_texts=SAMPLE_TEXTS, seed=seed)


@pytest.fixture(scope="session")
def policy() -> Policy:
    """One tiny policy for tests that do not change its weights."""
    return build_policy(TINY, sample_texts=SAMPLE_TEXTS, seed=0)


@pytest.fixture(scope="session")
def server(policy: Policy) -> Iterator[PolicyServer]:
    settings = ServerSettings(max_prompt_tokens=200, max_response_tokens=48, api_key="secret")
    with PolicyServer(policy, settings) as running:
        yield running


@pytest.fixture(scope="session")
def client(server: PolicyServer) -> OpenAI:
    return OpenAI(base_url=server.base_url, api_key="secret", max_retries=0)


@pytest.fixture
def make_tool() -> Callable[..., dict[str, Any]]:
    """An OpenAI function tool; every property is required unless ``required`` says otherwise."""

    def make(name: str, required: Sequence[str] | None = None, /, **properties: Any) -> dict[str, Any]:
        needed = list(properties if required is None else required)
        parameters = {"type": "object", "properties": properties, "required": needed}
        return {"type": "function", "function": {"name": name, "parameters": parameters}}

    return make


@pytest.fixture
def act(make_tool: Callable[..., dict[str, Any]]) -> Callable[..., Tools]:
    """The one tool of a text game: a command among those that are valid now."""
    return lambda *commands: [make_tool("act", command={"type": "string", "enum": list(commands)})]


def jobs(policy: Policy, requests: Sequence[dict[str, Any]]) -> list[Job]:
    """Requests made ready for the sampler."""
    server = ServerSettings(max_response_tokens=64)
    return [prepare(ChatRequest.model_validate(request), policy, server, 1.0) for request in requests]


def decode(policy: Policy, ready: Sequence[Job]) -> list[Completion]:
    """Decode in one batch, in this thread, and keep the sampling records."""
    rows = [Row(job.generation, policy) for job in ready]
    batch = Batch(policy, [row for row in rows if not row.done])
    with torch.inference_mode():
        while batch.rows:
            batch.step()
            batch.retire()
    for row in rows:
        record = row.completion.record(row.generation.temperature)
        policy.records.add(row.generation.prompt, row.completion.tokens, record)
    return [row.completion for row in rows]


@pytest.fixture
def sample() -> Callable[[Policy, Sequence[dict[str, Any]]], list[Completion]]:
    """Answer requests in one batch, without a server."""
    return lambda policy, requests: decode(policy, jobs(policy, requests))


@pytest.fixture
def prepared() -> Callable[[Policy, Sequence[dict[str, Any]]], list[Job]]:
    """Requests made ready for the sampler."""
    return jobs


@pytest.fixture
def to_rows() -> Callable[..., RowBatch]:
    """Answer requests and give each response the advantage that ``judge`` finds for its text."""

    def collect(
        policy: Policy, requests: Sequence[dict[str, Any]], judge: Callable[[str], float]
    ) -> RowBatch:
        ready = jobs(policy, requests)
        rows = [
            TrainingRow(
                task_id="task",
                rollout_index=index,
                step_index=0,
                prompt_token_ids_T=np.array(job.generation.prompt),
                response_token_ids_T=np.array(done.tokens),
                logprobs_T=None,
                advantage=np.float32(judge(policy.tokenizer.decode(done.tokens))),
            )
            for index, (job, done) in enumerate(zip(ready, decode(policy, ready), strict=True))
        ]
        return RowBatch(tuple(rows))

    return collect


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen2-style model with random weights and a byte-level BPE tokenizer of ChatML, as a folder."""
    folder = tmp_path_factory.mktemp("qwen2")
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        show_progress=False,
    )
    core.train_from_iterator([CHATML_TEMPLATE, *SAMPLE_TEXTS], trainer)
    core.add_tokens([AddedToken(text, special=False) for text in ("<tool_call>", "</tool_call>")])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=640,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=0.2,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def lora_policy(pretrained: Path) -> Callable[[], Policy]:
    """A fresh policy with adapters on the pretrained model."""
    settings = ModelSettings(path=str(pretrained), lora=LoraSettings(rank=4), device="cpu")
    return lambda: build_policy(settings, seed=0)
