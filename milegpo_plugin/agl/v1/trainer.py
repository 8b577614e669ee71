"""Agent Lightning 1.0's trainer with our adapter between finished rollouts and training rows."""

from __future__ import annotations

from functools import partial
from typing import Any

from agentlightning.verl import trainer as upstream

from milegpo_plugin.agl.v1.adapter import CreditRolloutAdapter
from milegpo_plugin.agl.v1.checks import check_config
from milegpo_plugin.agl.v1.omega import plain_section
from milegpo_plugin.agl.v1.settings import SECTION, read_settings


class MileGPOTrainer(upstream.AgentLightningRayPPOTrainer):
    """The stock trainer, except that each of its rollout adapters knows our settings.

    Raises:
        ConfigError: the config was changed after ``configure`` in a way that loses step credit.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        check_config(self.config, own_hook=True)
        upstream.RolloutAdapter = partial(
            CreditRolloutAdapter,
            settings=read_settings(plain_section(self.config, SECTION)),
            rollouts_per_task=self.config.actor_rollout_ref.rollout.n,
        )

    def _train_step(self, timing_raw: dict[str, float], curr_step_profile: bool) -> Any:
        """One step; adds the share of the time spent so far that the credit took."""
        result = super()._train_step(timing_raw, curr_step_profile)
        if result is not None:
            metrics, _ = result
            metrics["milegpo/credit_share"] = metrics["milegpo/credit_seconds"] / sum(timing_raw.values())
        return result
