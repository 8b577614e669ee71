"""Stand-ins for what needs a GPU: one worker around verl's real actor, on a tiny Qwen2."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM
from verl import DataProto
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.actor.dp_actor import DataParallelPPOActor

VOCABULARY = 300


def tiny_qwen2() -> Qwen2ForCausalLM:
    """About 37,000 parameters, the same ones every time."""
    torch.manual_seed(0)
    size = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
    )
    return Qwen2ForCausalLM(size)


def start_process_group(file: str) -> None:
    """A group of one process; verl's actor asks for its rank."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=0, world_size=1)


class Workers:
    """The actor's and the reference policy's worker group, in this process instead of through Ray."""

    world_size = 1

    def __init__(self, config: Any) -> None:
        actor = copy.deepcopy(config.actor_rollout_ref.actor)
        actor.ppo_mini_batch_size *= config.actor_rollout_ref.rollout.n  # as verl's workers do
        self.model = tiny_qwen2()
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=actor.optim.lr)
        dataclass = omega_conf_to_dataclass(actor)
        self.actor = DataParallelPPOActor(dataclass, self.model, optimizer)
        self.ref = DataParallelPPOActor(dataclass, tiny_qwen2())
        self.updates: list[DataProto] = []

    def weights(self) -> torch.Tensor:
        parameters = self.model.parameters()
        return torch.cat([parameter.detach().flatten() for parameter in parameters]).clone()

    def load_checkpoint(self, path: str | None) -> None:
        assert path is None

    def compute_log_prob(self, batch: DataProto) -> DataProto:
        log_probs, entropys = self.actor.compute_log_prob(_sized(batch), calculate_entropy=True)
        return DataProto.from_dict(tensors={"old_log_probs": log_probs, "entropys": entropys})

    def compute_ref_log_prob(self, batch: DataProto) -> DataProto:
        log_probs, _ = self.ref.compute_log_prob(_sized(batch))
        return DataProto.from_dict(tensors={"ref_log_prob": log_probs})

    def update_actor(self, batch: DataProto) -> DataProto:
        self.updates.append(batch)
        return DataProto(meta_info={"metrics": self.actor.update_policy(_sized(batch))})


class Engine:
    """The manager of the inference servers at ``server_addresses``."""

    def __init__(self, server_addresses: list[str]) -> None:
        self.server_addresses = server_addresses

    def wake_up(self) -> None:
        pass

    def sleep(self) -> None:
        pass


def _sized(batch: DataProto) -> DataProto:
    batch.meta_info |= {"micro_batch_size": 8, "temperature": 1.0, "use_dynamic_bsz": False}
    return batch
