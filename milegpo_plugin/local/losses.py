"""Token losses of the policy update, equation by equation.

Axis suffix: ``_N`` free response tokens of a minibatch (those where the policy had a choice).
"""

from __future__ import annotations

import torch
from torch import Tensor


def clipped_policy_loss(ratio_N: Tensor, advantage_N: Tensor, *, clip_low: float, clip_high: float) -> Tensor:
    """-min(r A, clip(r, 1 - clip_low, 1 + clip_high) A), [N].

    Schulman et al. 2017, arXiv:1707.06347, eq. 7, with the two bounds apart as in DAPO,
    arXiv:2503.14476, eq. 10.
    """
    clipped_N = ratio_N.clamp(1.0 - clip_low, 1.0 + clip_high)
    return -torch.minimum(ratio_N * advantage_N, clipped_N * advantage_N)


def k3(log_ratio_N: Tensor) -> Tensor:
    """Unbiased, non-negative estimate of KL(p || q) at samples of p, from log(q / p), [N].

    J. Schulman, "Approximating KL divergence", 2020: k3 = (q / p - 1) - log(q / p).
    """
    return torch.expm1(log_ratio_N) - log_ratio_N


def token_weights(row_N: Tensor, mean: str) -> Tensor:
    """Weight of each token in the mean over a minibatch, [N]; they sum to 1.

    Args:
        row_N: index of each token's row.
        mean: ``"token"``: every token counts the same (DAPO, section 3.3); ``"row"``: every row
            counts the same, and every token within its row.
    """
    if mean == "token":
        return torch.full(row_N.shape, 1.0 / len(row_N), device=row_N.device)
    counts = torch.bincount(row_N)
    return 1.0 / (counts[row_N] * torch.count_nonzero(counts))
