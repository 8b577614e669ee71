"""The estimators behind one option."""

from __future__ import annotations

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit.advantages import Advantages, step_advantages
from milegpo_plugin.credit.baselines import (
    gigpo_advantages,
    grpo_advantages,
    hgpo_advantages,
    rloo_advantages,
)
from milegpo_plugin.credit.planning import plan_advantages
from milegpo_plugin.credit.shaping import Shaping
from milegpo_plugin.groups import Batch


def estimate_advantages(batch: Batch, shaping: Shaping, config: CreditConfig) -> Advantages:
    """The advantages of ``config.estimator``."""
    match config.estimator:
        case "milegpo" | "graphgpo":
            return step_advantages(batch, shaping, config)
        case "plangpo":
            return plan_advantages(batch, shaping, config)
        case "gigpo":
            return gigpo_advantages(batch, config)
        case "hgpo":
            return hgpo_advantages(batch, config)
        case "grpo":
            return grpo_advantages(batch, config)
        case "rloo":
            return rloo_advantages(batch)
