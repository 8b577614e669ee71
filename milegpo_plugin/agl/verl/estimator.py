"""The advantage estimator ``milegpo`` of verl: every token of a step gets the step's advantage.

verl hands an estimator no step ids. The daemon therefore writes the advantage of a step on its last
response token, and lays rows out so that each run of ones in the response mask is one step.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

ESTIMATOR: Final = "milegpo"


def spread_step_advantages(
    token_level_rewards: Tensor, response_mask: Tensor, **_: Any
) -> tuple[Tensor, Tensor]:
    """Spread each step's advantage over its tokens.

    Args:
        token_level_rewards: the advantage of a step on its last token, 0 elsewhere, [rows, tokens].
        response_mask: 1 on the policy's own tokens, [rows, tokens].

    Returns:
        Advantages and returns, both [rows, tokens] and 0 outside the mask. They are equal: without
        a critic the returns serve the trainer's metrics only.
    """
    with torch.no_grad():
        mask = response_mask.bool()
        before = torch.nn.functional.pad(mask, (1, 0))[:, :-1]
        step = (mask & ~before).cumsum(dim=-1)  # 0 before the first step, then 1, 2, …
        totals = token_level_rewards.new_zeros(mask.shape[0], mask.shape[1] + 1)
        totals.scatter_add_(1, step, token_level_rewards * mask)
        advantages = totals.gather(1, step) * mask
    return advantages, advantages


def register_estimator() -> None:
    """Make ``milegpo`` known to verl in this process; a second call changes nothing."""
    from verl.trainer.ppo.core_algos import register_adv_est

    register_adv_est(ESTIMATOR)(spread_step_advantages)
