"""Agent Lightning's trainer with the estimator registered and the credit's figures in the log."""

from __future__ import annotations

from typing import Any

from agentlightning.verl.trainer import AgentLightningTrainer

from milegpo_plugin.agl.verl.estimator import register_estimator

PROMPT_TOO_LONG = "milegpo/steps_skipped/prompt_too_long"


class MileGPOTrainer(AgentLightningTrainer):
    """The stock trainer; credit itself is the daemon's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        register_estimator()
        super().__init__(*args, **kwargs)

    def _train_step(self, batch_dict: dict[str, Any]) -> dict[str, Any]:
        """One step; adds the share of the step that the credit took.

        The stock trainer counts prompts that are too long by a mask; here they never become rows.
        """
        metrics: dict[str, Any] = super()._train_step(batch_dict)
        metrics["milegpo/credit_share"] = metrics["milegpo/credit_seconds"] / metrics["timing_s/step"]
        metrics["training/n_triplets_prompt_too_long"] = metrics.get(PROMPT_TOO_LONG, 0.0)
        return metrics
