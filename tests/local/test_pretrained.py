"""Models as people have them: folders, GGUF files, chat templates with and without tools."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from milegpo_plugin.errors import ConfigError, MissingDependencyError
from milegpo_plugin.local.chat import render_prompt
from milegpo_plugin.local.learner import Learner
from milegpo_plugin.local.model import Policy, build_policy, load_policy
from milegpo_plugin.local.settings import LearnerSettings, LoraSettings, ModelSettings
from milegpo_plugin.rows import RowBatch

OWN_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + ': ' + message['content'] + '<|im_end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant: ' }}{% endif %}"
)
WIDTH, HIDDEN, HEADS = 32, 64, 4
QUANTIZED = gguf.GGMLQuantizationType.Q8_0


def write_gguf(path: Path, tokenizer_file: Path) -> None:
    """A Llama of one layer with random 8-bit weights, as llama.cpp writes it."""
    bpe = json.loads(tokenizer_file.read_text(encoding="utf-8"))
    known = {**bpe["model"]["vocab"], **{token["content"]: token["id"] for token in bpe["added_tokens"]}}
    tokens = sorted(known, key=known.__getitem__)
    writer = gguf.GGUFWriter(path, "llama")
    for add, value in (
        (writer.add_context_length, 512),
        (writer.add_embedding_length, WIDTH),
        (writer.add_block_count, 1),
        (writer.add_feed_forward_length, HIDDEN),
        (writer.add_head_count, HEADS),
        (writer.add_head_count_kv, HEADS),
        (writer.add_vocab_size, len(tokens)),
        (writer.add_layer_norm_rms_eps, 1e-5),
        (writer.add_tokenizer_model, "gpt2"),
        (writer.add_token_list, tokens),
        (writer.add_token_merges, [" ".join(pair) for pair in bpe["model"]["merges"]]),
        (writer.add_bos_token_id, known["<|im_start|>"]),
        (writer.add_eos_token_id, known["<|im_end|>"]),
        (writer.add_chat_template, OWN_TEMPLATE),
    ):
        add(value)
    shapes = {"token_embd": (len(tokens), WIDTH), "blk.0.ffn_down": (WIDTH, HIDDEN)}
    shapes |= {f"blk.0.ffn_{name}": (HIDDEN, WIDTH) for name in ("gate", "up")}
    shapes |= {f"blk.0.attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
    drawn = np.random.default_rng(0)
    for name, shape in shapes.items():
        weights = drawn.normal(scale=0.2, size=shape).astype(np.float32)
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(weights, QUANTIZED), raw_dtype=QUANTIZED)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, dtype=np.float32))
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()


@pytest.fixture(scope="session")
def gguf_file(pretrained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("gguf") / "tiny.Q8_0.gguf"
    write_gguf(file, pretrained / "tokenizer.json")
    return file


@pytest.fixture
def own_template(pretrained: Path, tmp_path: Path) -> Policy:
    """A model whose own template knows no tools."""
    policy = build_policy(ModelSettings(path=str(pretrained), device="cpu"))
    policy.module.save_pretrained(tmp_path)
    policy.tokenizer.chat_template = OWN_TEMPLATE
    policy.tokenizer.save_pretrained(tmp_path)
    return build_policy(ModelSettings(path=str(tmp_path), device="cpu"))


def shown(policy: Policy, messages: list[dict[str, Any]], tools: Any = None) -> str:
    return str(policy.tokenizer.decode(render_prompt(policy.tokenizer, messages, tools)))


def test_a_gguf_file_is_unpacked_to_the_weights_that_it_stands_for(gguf_file: Path) -> None:
    policy = build_policy(ModelSettings(path=str(gguf_file), device="cpu"))
    (stored,) = [t for t in gguf.GGUFReader(gguf_file).tensors if t.name == "token_embd.weight"]
    expected = gguf.quants.dequantize(stored.data, stored.tensor_type)
    torch.testing.assert_close(policy.module.get_input_embeddings().weight.detach(), torch.tensor(expected))
    assert all(weight.dtype == torch.float32 for _, weight in policy.trainable())
    assert shown(policy, [{"role": "user", "content": "kitchen"}]) == (
        "<|im_start|>user: kitchen<|im_end|><|im_start|>assistant: "
    )


@pytest.mark.parametrize("lora", [None, LoraSettings(rank=2)])
def test_a_gguf_file_is_trained_saved_and_read_again(
    gguf_file: Path, lora: LoraSettings | None, act: Callable[..., Any], to_rows: Any, tmp_path: Path
) -> None:
    policy = build_policy(ModelSettings(path=str(gguf_file), device="cpu", lora=lora))
    request = {
        "messages": [{"role": "user", "content": "kitchen"}],
        "tools": act("move north", "take coin"),
        "tool_choice": "required",
    }
    rows: RowBatch = to_rows(policy, [request] * 8, lambda text: 1.0 if "coin" in text else -1.0)
    metrics = Learner(policy, LearnerSettings(learning_rate=1e-2)).update(rows)
    assert metrics["ratio_max_dev"] < 1e-3
    policy.save(tmp_path)
    again = load_policy(tmp_path)
    for (name, one), (_, two) in zip(policy.trainable(), again.trainable(), strict=True):
        assert torch.equal(one, two), name
    assert shown(again, request["messages"], request["tools"]) == shown(
        policy, request["messages"], request["tools"]
    )


def test_a_folder_with_one_gguf_file_needs_no_name_and_one_with_several_does(
    gguf_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.gguf").symlink_to(gguf_file)
    assert build_policy(ModelSettings(path=str(tmp_path), device="cpu")).max_positions == 512
    (tmp_path / "b.gguf").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"holds a\.gguf, b\.gguf; name one as model\.gguf_file"):
        build_policy(ModelSettings(path=str(tmp_path), device="cpu"))
    named = ModelSettings(path=str(tmp_path), gguf_file="a.gguf", device="cpu")
    assert build_policy(named).max_positions == 512


def test_what_is_no_gguf_file_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF but not really")
    with pytest.raises(ConfigError, match=r"model\.path: cannot load"):
        build_policy(ModelSettings(path=str(tmp_path / "broken.gguf"), device="cpu"))


def test_without_the_package_one_line_says_what_to_install(
    gguf_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "gguf" else found(name))
    with pytest.raises(MissingDependencyError, match=r"pip install 'milegpo-plugin\[gguf\]'"):
        build_policy(ModelSettings(path=str(gguf_file), device="cpu"))


def test_a_conversation_without_tools_is_shown_by_the_model_s_own_template(own_template: Policy) -> None:
    messages = [{"role": "system", "content": "Act."}, {"role": "user", "content": "kitchen"}]
    assert shown(own_template, messages) == own_template.tokenizer.apply_chat_template(
        messages, chat_template=OWN_TEMPLATE, tokenize=False, add_generation_prompt=True
    )


def test_tools_and_what_they_gave_are_shown_by_a_template_that_can(
    own_template: Policy, act: Callable[..., Any]
) -> None:
    asked = {"role": "user", "content": "kitchen"}
    call = {"id": "c", "type": "function", "function": {"name": "act", "arguments": "{}"}}
    turns = [asked, {"role": "assistant", "content": None, "tool_calls": [call]}]
    turns += [{"role": "tool", "tool_call_id": "c", "content": "pantry"}]
    assert "<tools>" in shown(own_template, [asked], act("move north"))
    assert "<tool_response>\npantry\n</tool_response>" in shown(own_template, turns)


def test_a_saved_policy_keeps_both_templates(own_template: Policy, tmp_path: Path) -> None:
    own_template.save(tmp_path / "saved")
    again = load_policy(tmp_path / "saved")
    assert again.tokenizer.chat_template == own_template.tokenizer.chat_template
    assert isinstance(AutoTokenizer.from_pretrained(tmp_path / "saved/tokenizer").chat_template, dict)


@pytest.mark.parametrize("lora", [None, LoraSettings(rank=2)])
def test_bfloat16_is_sampled_trained_and_saved(
    pretrained: Path, lora: LoraSettings | None, act: Callable[..., Any], to_rows: Any, tmp_path: Path
) -> None:
    """Weights are bfloat16, adapters float32; an update at a small rate is not rounded away."""
    policy = build_policy(ModelSettings(path=str(pretrained), dtype="bfloat16", lora=lora, device="cpu"))
    assert policy.module.get_input_embeddings().weight.dtype == torch.bfloat16
    request = {
        "messages": [{"role": "user", "content": "kitchen"}],
        "tools": act("move north", "take coin"),
        "tool_choice": "required",
    }
    rows: RowBatch = to_rows(policy, [request] * 8, lambda text: 1.0 if "coin" in text else -1.0)
    before = [weight.detach().clone() for _, weight in policy.trainable()]
    learner = Learner(policy, LearnerSettings(learning_rate=1e-2))
    metrics = learner.update(rows)
    assert metrics["ratio_max_dev"] < 0.05
    assert any(not torch.equal(one, two) for one, (_, two) in zip(before, policy.trainable(), strict=True))
    policy.save(tmp_path)
    again = load_policy(tmp_path)
    assert all(
        torch.equal(one, two)
        for (_, one), (_, two) in zip(policy.trainable(), again.trainable(), strict=True)
    )
