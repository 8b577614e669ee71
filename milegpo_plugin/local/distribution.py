"""The distribution a token is drawn from. Sampler and learner share it, so that they agree.

A token is drawn from softmax(logits / temperature) over the allowed tokens. Grammar masks and
top_p both only remove tokens, so one mask says it all. Greedy requests (temperature 0) take
the mode; their log-probabilities are those of temperature 1.

Axis suffixes: ``_N`` positions, ``_V`` vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def log_distribution(logits_NV: Tensor, allowed_NV: Tensor, temperature_N: Tensor) -> Tensor:
    """Log-probabilities, [N, V] float32; -inf where a token is not allowed."""
    scaled_NV = logits_NV.float() / temperature_N[:, None]
    return torch.log_softmax(scaled_NV.masked_fill(~allowed_NV, float("-inf")), dim=-1)


def entropy(log_probs_NV: Tensor) -> Tensor:
    """Entropy of each distribution in nats, [N]; tokens that are not allowed count nothing."""
    finite_NV = log_probs_NV.masked_fill(log_probs_NV == float("-inf"), 0.0)
    return -(log_probs_NV.exp() * finite_NV).sum(-1)


def nucleus(log_probs_NV: Tensor, top_p_N: Tensor) -> Tensor:
    """Tokens of the smallest set with at least top_p of the probability, [N, V] bool.

    Holtzman et al. 2020, arXiv:1904.09751, section 3.1.
    """
    sorted_NV, order_NV = log_probs_NV.exp().sort(dim=-1, descending=True)
    before_NV = sorted_NV.cumsum(-1) - sorted_NV
    kept_NV = before_NV < top_p_N[:, None]
    kept_NV[:, 0] = True
    return torch.zeros_like(kept_NV).scatter(-1, order_NV, kept_NV)


def draw(log_probs_NV: Tensor, uniform_N: Tensor) -> Tensor:
    """Invert the cumulative distribution at a uniform number of [0, 1), [N] token ids."""
    cumulative_NV = log_probs_NV.double().exp().cumsum(-1)
    target_N1 = uniform_N[:, None] * cumulative_NV[:, -1:]
    token_N = torch.searchsorted(cumulative_NV, target_N1, right=True).squeeze(-1)
    token_N = token_N.clamp(max=log_probs_NV.shape[-1] - 1)
    possible_N = log_probs_NV.gather(-1, token_N[:, None]).squeeze(-1) > float("-inf")
    return torch.where(possible_N, token_N, log_probs_NV.argmax(-1))


def unpack_masks(masks: Sequence[NDArray[np.int32] | None], vocabulary: int) -> NDArray[np.bool_]:
    """Bitmasks as booleans, [N, V]; None allows every token."""
    allowed_NV = np.ones((len(masks), vocabulary), dtype=np.bool_)
    for row, mask in enumerate(masks):
        if mask is not None:
            words = mask.astype("<i4", copy=False).view(np.uint8)
            allowed_NV[row] = np.unpackbits(words, bitorder="little", count=vocabulary).view(np.bool_)
    return allowed_NV


def pack_mask(allowed_V: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Booleans as a bitmask, [ceil(V / 32)]; the inverse of :func:`unpack_masks`."""
    padded = np.zeros(-(-len(allowed_V) // 32) * 32, dtype=np.bool_)
    padded[: len(allowed_V)] = allowed_V
    return np.packbits(padded, bitorder="little").view("<i4").astype(np.int32)
