"""The paper's training set-up as a config of verl: what ``MileGPO()`` trains with.

Qwen2.5-1.5B-Instruct, 16 tasks × 8 rollouts a step, 300 steps, KL loss 0.01, learning rate 1e-6
(MileGPO, arXiv 2608.19803). What the paper leaves open follows Agent Lightning's own examples.
"""

from __future__ import annotations

from typing import Any, Final

PAPER_CONFIG: Final[dict[str, Any]] = {
    "data": {"train_batch_size": 16, "max_prompt_length": 2048, "max_response_length": 512},
    "actor_rollout_ref": {
        "model": {
            "path": "Qwen/Qwen2.5-1.5B-Instruct",
            "use_remove_padding": True,
            "enable_gradient_checkpointing": True,
        },
        "rollout": {
            "name": "vllm",
            "n": 8,
            "temperature": 1.0,
            "tensor_model_parallel_size": 1,
            "gpu_memory_utilization": 0.6,
            "log_prob_micro_batch_size_per_gpu": 16,
            "multi_turn": {"format": "hermes"},
        },
        "actor": {
            "ppo_mini_batch_size": 16,
            "ppo_micro_batch_size_per_gpu": 8,
            "optim": {"lr": 1e-6},
            "use_kl_loss": True,
            "kl_loss_coef": 0.01,
            "kl_loss_type": "low_var_kl",
            "entropy_coeff": 0,
        },
        "ref": {"log_prob_micro_batch_size_per_gpu": 16, "fsdp_config": {"param_offload": True}},
    },
    "trainer": {
        "n_gpus_per_node": 1,
        "nnodes": 1,
        "logger": ["console"],
        "project_name": "milegpo",
        "experiment_name": "paper",
        "total_epochs": 1000,
        "total_training_steps": 300,
        "test_freq": 10,
        "save_freq": 50,
        "val_before_train": True,
        "critic_warmup": 0,
    },
}
