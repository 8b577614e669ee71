"""Settings of the embedded backend: model, policy server, learner. Loads no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from milegpo_plugin.config import describe, read_yaml
from milegpo_plugin.errors import ConfigError


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TinyModelSettings(_Settings):
    """A small Llama-style model with its own tokenizer, built from scratch."""

    hidden_size: int = Field(96, ge=8, description="width; an even multiple of heads")
    intermediate_size: int = Field(256, ge=8, description="width of the feed-forward layers")
    layers: int = Field(2, ge=1)
    heads: int = Field(4, ge=1, description="attention heads")
    max_positions: int = Field(4096, ge=64, description="longest prompt plus response, in tokens")
    max_vocabulary: int = Field(4096, ge=512, description="most tokens the tokenizer may have")
    history_messages: int | None = Field(
        None,
        ge=1,
        description="show only the system prompt, the first user message and this many last messages; None shows all",
    )

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> TinyModelSettings:
        if self.hidden_size % (2 * self.heads):
            raise ValueError("hidden_size must be an even multiple of heads")
        return self


class LoraSettings(_Settings):
    """Low-rank adapters (Hu et al. 2021, arXiv:2106.09685)."""

    rank: int = Field(16, ge=1)
    alpha: float = Field(32.0, gt=0, description="the update is scaled by alpha / rank")
    target_modules: str | list[str] = Field("all-linear", description="modules that get an adapter")


class ModelSettings(_Settings):
    """Which model is the policy."""

    path: str | None = Field(
        None, description="Hugging Face causal LM: name, directory or GGUF file; None: tiny model"
    )
    gguf_file: str | None = Field(None, description="which GGUF file of path; it is unpacked to dtype")
    tiny: TinyModelSettings = TinyModelSettings()
    lora: LoraSettings | None = Field(None, description="train adapters only; None trains every weight")
    device: str = Field("auto", description="torch device; auto takes cuda when there is one")
    dtype: Literal["float32", "bfloat16"] = "float32"

    @model_validator(mode="after")
    def _parts_need_a_model(self) -> ModelSettings:
        if self.lora is not None and self.path is None:
            raise ValueError("lora needs a pretrained model; set path")
        if self.gguf_file is not None and self.path is None:
            raise ValueError("gguf_file is a file of path; set path")
        return self


class ServerSettings(_Settings):
    """The policy server: OpenAI chat completions on a loopback port."""

    host: str = "127.0.0.1"
    port: int = Field(0, ge=0, le=65535, description="0 takes a free port")
    model_name: str = "policy"
    api_key: str | None = Field(
        None, description="requests must carry it as a bearer token; None asks for none"
    )
    max_prompt_tokens: int = Field(3072, ge=1, description="longer prompts get error 400")
    max_response_tokens: int = Field(512, ge=1, description="cap, and default of max_tokens")
    max_batch: int = Field(16, ge=1, description="requests decoded together")
    gather_ms: float = Field(2.0, ge=0, description="how long an idle server waits to fill a batch")
    prefix_cache_mb: float = Field(
        256.0, ge=0, description="memory for states of earlier prompts; 0 reuses none"
    )
    training: bool = Field(True, description="put token ids and log-probabilities in every response")
    auto_tool_choice: Literal["auto", "required"] = Field(
        "auto", description="what tool_choice auto (or none given) means when there are tools"
    )
    max_records: int = Field(200_000, ge=1, description="sampling records kept; the oldest go first")
    seed: int = Field(0, ge=0, description="seed of requests that give none")


class LearnerSettings(_Settings):
    """Clipped token-level policy gradient (PPO, Schulman et al. 2017; DAPO, Yu et al. 2025)."""

    learning_rate: float = Field(1e-3, gt=0)
    total_iterations: int | None = Field(
        None, ge=1, description="the rate falls linearly to 0 over this many updates; None keeps it"
    )
    weight_decay: float = Field(0.0, ge=0)
    max_grad_norm: float = Field(1.0, gt=0)
    clip_low: float = Field(0.2, gt=0, lt=1, description="ratio clipped below at 1 - clip_low")
    clip_high: float = Field(0.25, gt=0, description="ratio clipped above at 1 + clip_high")
    kl_coefficient: float = Field(
        0.0, ge=0, description="weight of the k3 KL to the first policy; 0 keeps no reference"
    )
    entropy_coefficient: float = Field(0.02, ge=0)
    epochs: int = Field(1, ge=1, description="passes over the rows of one update")
    minibatch_rows: int = Field(64, ge=1, description="rows per optimizer step")
    microbatch_tokens: int = Field(
        16_384, ge=1, description="padded tokens per forward pass; gradients accumulate"
    )
    loss_mean: Literal["token", "row"] = Field(
        "token", description="mean over tokens (DAPO), or over rows of their means"
    )
    scale_advantages: bool = Field(True, description="divide by the root mean square over the rows")
    max_advantage: float = Field(3.0, gt=0, description="bound of a scaled advantage, either sign")
    seed: int = Field(0, ge=0, description="seed of the row order")


class LocalSettings(_Settings):
    """Every setting of the embedded backend.

    Raises:
        ConfigError: from :meth:`load` and :meth:`from_file` when a name or value is not allowed.
    """

    model: ModelSettings = ModelSettings()
    server: ServerSettings = ServerSettings()
    learner: LearnerSettings = LearnerSettings()
    threads: int | None = Field(None, ge=1, description="torch CPU threads; None leaves torch's choice")
    seed: int = Field(0, ge=0, description="seed of the first weights")

    @classmethod
    def load(cls, values: dict[str, Any]) -> LocalSettings:
        """Validate a plain mapping; the error names the field, the rule and the value."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ConfigError(f"local backend settings: {describe(error)}") from error

    @classmethod
    def from_file(cls, path: str | Path) -> LocalSettings:
        """Read a YAML mapping."""
        return cls.load(read_yaml(path))
