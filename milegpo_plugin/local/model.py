"""The policy: a causal language model, its tokenizer, and what sampler and learner share.

The module stays in evaluation mode throughout (no dropout), so that the learner scores what
the sampler drew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

from milegpo_plugin.errors import ConfigError, InputNotFoundError
from milegpo_plugin.local.chat import (
    HERMES_CALLS,
    TINY_CALLS,
    CallFormat,
    tiny_template,
)
from milegpo_plugin.local.constraints import ConstraintCompiler
from milegpo_plugin.local.gate import WeightGate
from milegpo_plugin.local.pretrained import Source, find_source, load_module, load_tokenizer, no_progress_bar
from milegpo_plugin.local.records import SamplingRecords
from milegpo_plugin.local.settings import LoraSettings, ModelSettings, TinyModelSettings
from milegpo_plugin.local.tokenizer import build_tokenizer

_POLICY_FILE: Final = "policy.json"


@dataclass(eq=False)
class Policy:
    """A model that the server samples from and the learner changes, in one process.

    ``version`` counts updates. Whoever uses the weights goes through ``gate``.
    """

    module: Any
    tokenizer: PreTrainedTokenizerBase
    calls: CallFormat
    constraints: ConstraintCompiler
    end_tokens: frozenset[int]
    settings: ModelSettings
    records: SamplingRecords = field(default_factory=SamplingRecords)
    gate: WeightGate = field(default_factory=WeightGate)
    version: int = 0

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return torch.device(self.module.device)

    @property
    def vocabulary(self) -> int:
        """Number of logits."""
        return int(self.module.get_output_embeddings().weight.shape[0])

    @property
    def max_positions(self) -> int | None:
        """Longest prompt plus response; None when the model states no limit."""
        limit = getattr(self.module.config, "max_position_embeddings", None)
        return None if limit is None else int(limit)

    def trainable(self) -> list[tuple[str, torch.nn.Parameter]]:
        """Names and parameters that the learner changes."""
        return [(name, weight) for name, weight in self.module.named_parameters() if weight.requires_grad]

    def logits(
        self,
        ids: Tensor,
        attended: Tensor,
        *,
        keep: int | Tensor,
        cache: Any | None = None,
        module: Any | None = None,
    ) -> Tensor:
        """Run the model over left-padded rows.

        Args:
            ids: new tokens, [rows, new].
            attended: 1 for tokens, 0 for padding, over cached and new positions, [rows, cached + new].
            keep: how many last positions, or which positions of ``ids``, get logits.
            cache: a transformers cache that holds the earlier positions, and then the new ones too.
            module: another model than the policy's own, of the same kind.

        Returns:
            Logits, [rows, kept, vocabulary].
        """
        positions = (attended.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        output = (module or self.module)(
            input_ids=ids,
            attention_mask=attended,
            position_ids=positions,
            cache=cache,
            use_cache=cache is not None,
            logits_to_keep=keep,
        )
        logits: Tensor = output.logits
        return logits

    def save(self, directory: Path) -> None:
        """Write the model (of LoRA the adapter only), the tokenizer and the settings."""
        with no_progress_bar():
            self.module.save_pretrained(directory / "model")
        self.tokenizer.save_pretrained(directory / "tokenizer")
        about = {"version": self.version, "settings": self.settings.model_dump(mode="json")}
        (directory / _POLICY_FILE).write_text(json.dumps(about, indent=1), encoding="utf-8")


def build_policy(settings: ModelSettings, *, sample_texts: Iterable[str] = (), seed: int = 0) -> Policy:
    """A fresh policy: a tiny model from scratch, or a Hugging Face model by path.

    Args:
        settings: which model, device and precision.
        sample_texts: text as the policy will see it; gives the tiny model its words.
        seed: seed of the first weights, and of the adapters.

    Raises:
        ConfigError: the device, the model or its tokenizer cannot be used.
        MissingDependencyError: the model is a GGUF file and the package gguf is not installed.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if settings.path is None:
            tokenizer = _tiny_tokenizer(settings.tiny, sample_texts)
            module = _tiny_model(settings.tiny, tokenizer).to(dtype=_dtype(settings))
            return _policy(module, tokenizer, settings)
        source = find_source(settings)
        module, tokenizer = load_module(source, _dtype(settings)), load_tokenizer(source)
        return _policy(_with_adapters(module, settings.lora), tokenizer, settings)


def load_policy(directory: Path) -> Policy:
    """A policy as :meth:`Policy.save` wrote it.

    Raises:
        InputNotFoundError: ``directory`` holds no saved policy.
    """
    file = directory / _POLICY_FILE
    if not file.is_file():
        raise InputNotFoundError(f"{file}: no such file; the folder holds no saved policy")
    about = json.loads(file.read_text(encoding="utf-8"))
    settings = ModelSettings.model_validate(about["settings"])
    if settings.lora and settings.path:
        base = load_module(find_source(settings), _dtype(settings))
        module = PeftModel.from_pretrained(base, str(directory / "model"), is_trainable=True)
    else:
        module = load_module(Source(str(directory / "model")), _dtype(settings))
    tokenizer = load_tokenizer(Source(str(directory / "tokenizer")))
    policy = _policy(module, tokenizer, settings)
    policy.version = about["version"]
    return policy


def use_threads(threads: int | None) -> None:
    """Set torch's CPU threads for this process; None leaves torch's choice."""
    if threads is not None:
        torch.set_num_threads(threads)


def _tiny_tokenizer(tiny: TinyModelSettings, sample_texts: Iterable[str]) -> PreTrainedTokenizerBase:
    return build_tokenizer(
        sample_texts,
        max_vocabulary=tiny.max_vocabulary,
        max_positions=tiny.max_positions,
        chat_template=tiny_template(tiny.history_messages),
    )


def _tiny_model(tiny: TinyModelSettings, tokenizer: PreTrainedTokenizerBase) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=tiny.hidden_size,
            intermediate_size=tiny.intermediate_size,
            num_hidden_layers=tiny.layers,
            num_attention_heads=tiny.heads,
            num_key_value_heads=tiny.heads,
            max_position_embeddings=tiny.max_positions,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def _with_adapters(module: Any, lora: LoraSettings | None) -> Any:
    """The model with adapters; peft keeps theirs in float32, where small updates are not rounded away."""
    if lora is None:
        return module
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=0.0,
        target_modules=lora.target_modules,
        task_type="CAUSAL_LM",
    )
    return get_peft_model(module, config)


def _policy(module: Any, tokenizer: PreTrainedTokenizerBase, settings: ModelSettings) -> Policy:
    module.to(device=_device(settings.device)).eval()
    calls = TINY_CALLS if settings.path is None else HERMES_CALLS
    vocabulary = module.get_output_embeddings().weight.shape[0]
    return Policy(
        module=module,
        tokenizer=tokenizer,
        calls=calls,
        constraints=ConstraintCompiler(tokenizer, vocabulary, calls),
        end_tokens=_end_tokens(module, tokenizer),
        settings=settings,
    )


def _dtype(settings: ModelSettings) -> torch.dtype:
    dtype: torch.dtype = getattr(torch, settings.dtype)
    return dtype


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"model.device: torch cannot use {name!r}: {error}") from error


def _end_tokens(module: Any, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    if tokenizer.eos_token_id is None:
        raise ConfigError(f"model.path: the tokenizer of {tokenizer.name_or_path} has no end token")
    stated = getattr(module.generation_config, "eos_token_id", None)
    stated = stated if isinstance(stated, list) else [stated]
    return frozenset([tokenizer.eos_token_id, *(token for token in stated if token is not None)])
