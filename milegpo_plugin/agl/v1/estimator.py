"""The advantage estimator ``milegpo`` in Agent Lightning 1.0's trainer.

The trainer lays the rows out itself and may mask single tokens of a step later (rejection sampling
of verl's rollout correction). So every token carries the advantage of its step from the start, and
there is nothing left to spread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from torch import Tensor

ESTIMATOR: Final = "milegpo"


def keep_token_advantages(
    token_level_rewards: Tensor, response_mask: Tensor, **_: Any
) -> tuple[Tensor, Tensor]:
    """The advantages that the adapter wrote, on the tokens that are trained.

    Args:
        token_level_rewards: the advantage of its step on every token of a step, [rows, tokens].
        response_mask: 1 on the tokens that are trained, [rows, tokens].

    Returns:
        Advantages and returns, both [rows, tokens]. They are equal: without a critic the returns
        serve the trainer's metrics only.
    """
    advantages = token_level_rewards * response_mask
    return advantages, advantages


def register_estimator() -> None:
    """Make ``milegpo`` known to verl in this process; a second call changes nothing."""
    from verl.trainer.ppo.core_algos import register_adv_est

    register_adv_est(ESTIMATOR)(keep_token_advantages)
