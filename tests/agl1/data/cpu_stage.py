"""The GPU side of the trainer on CPU: a scripted model answers, and an update is written to a file.

``setup`` is the worker hook of the test run: the plugin's own hook, then the stand-ins. Everything
between them is the real trainer in the real Ray actor.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import torch
from tensordict import TensorDict
from verl import DataProto

MODEL_URL = "STAGE_MODEL_URL"
UPDATE_FILE = "STAGE_UPDATE_FILE"


def setup() -> None:
    """Run in every Ray process before anything else."""
    from milegpo_plugin.agl.v1.trainer import MileGPOTrainer
    from milegpo_plugin.agl.v1.worker import setup_worker

    setup_worker()
    MileGPOTrainer.init_workers = serve_scripted_model
    MileGPOTrainer._compute_old_log_prob = lambda self, batch: (zeros_like_answers(batch), 0.0)
    MileGPOTrainer._update_actor = keep_update


def serve_scripted_model(trainer: Any) -> None:
    """In place of vLLM and its weight transfer."""
    trainer.llm_server_manager = SimpleNamespace(
        get_addresses=lambda: [os.environ[MODEL_URL]], get_replicas=list
    )
    trainer.checkpoint_manager = SimpleNamespace(
        sleep_replicas=lambda: None, update_weights=lambda step: None
    )


def zeros_like_answers(batch: DataProto) -> DataProto:
    zeros = torch.zeros_like(batch.batch["responses"], dtype=torch.float32)
    return DataProto(batch=TensorDict({"old_log_probs": zeros}, batch_size=len(zeros)))


def keep_update(trainer: Any, batch: DataProto) -> DataProto:
    """In place of the actor's optimiser step: what the actor would have learned from."""
    from verl.trainer.ppo.core_algos import POLICY_LOSS_REGISTRY

    names = ("advantages", "response_mask", "token_level_scores", "responses")
    kept = {name: batch.batch[name] for name in names}
    kept["rollout_ids"] = batch.non_tensor_batch["rollout_id_list"].tolist()
    kept["losses"] = sorted(POLICY_LOSS_REGISTRY)
    torch.save(kept, os.environ[UPDATE_FILE])
    return DataProto.from_single_dict(data={}, meta_info={"metrics": {}})
