"""What runs at the start of every Ray process of a training run.

Agent Lightning takes its own hook only when none is configured, so ours calls it first. The names
that are replaced here are looked up by Agent Lightning when its task runner starts.
"""

from __future__ import annotations


def setup_worker() -> None:
    """Register the estimator, and put our trainer where the task runner looks for its own."""
    from agentlightning.verl import trainer
    from agentlightning.verl.per_rollout_loss import register_in_worker

    from milegpo_plugin.agl.v1.estimator import register_estimator
    from milegpo_plugin.agl.v1.trainer import MileGPOTrainer

    register_in_worker()
    register_estimator()
    trainer.AgentLightningRayPPOTrainer = MileGPOTrainer
