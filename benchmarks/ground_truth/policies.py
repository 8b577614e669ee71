"""Softmax policies, and policies of a wanted strength."""

from __future__ import annotations

import numpy as np

from benchmarks.ground_truth.exact import success_rate
from benchmarks.ground_truth.mdps import Floats, MDPs

_LEAST_SKILL, _LARGEST_SKILL = -20.0, 60.0
_BISECTIONS = 24


def softmax(mdps: MDPs, logit_MSA: Floats) -> Floats:
    """Action probabilities; illegal actions have none. Shape (M, S, A)."""
    masked = np.where(mdps.legal_MSA, logit_MSA, -np.inf)
    weight = np.exp(masked - masked.max(axis=2, keepdims=True))
    return weight / weight.sum(axis=2, keepdims=True)


def logits_of_strength(
    mdps: MDPs, optimal_MSA: Floats, success: float, rng: np.random.Generator, noise: float = 1.0
) -> Floats:
    """Logits of policies that succeed with a wanted probability. Shape (M, S, A).

    They are a skill times the standardised optimal action values plus Gaussian noise; the skill is
    found by bisection, one for each MDP. Where the probability is out of reach, the nearest.
    """
    ranked = _standardised(mdps, optimal_MSA)
    random = noise * rng.standard_normal(ranked.shape)
    low, high = np.full(len(mdps), _LEAST_SKILL), np.full(len(mdps), _LARGEST_SKILL)
    for _ in range(_BISECTIONS):
        skill = (low + high) / 2
        weak = success_rate(mdps, softmax(mdps, skill[:, None, None] * ranked + random)) < success
        low, high = np.where(weak, skill, low), np.where(weak, high, skill)
    return ((low + high) / 2)[:, None, None] * ranked + random


def _standardised(mdps: MDPs, optimal_MSA: Floats) -> Floats:
    """Optimal action values over their spread at each state; 0 where all legal actions tie."""
    count = mdps.legal_MSA.sum(axis=2, keepdims=True)
    value = np.where(mdps.legal_MSA, optimal_MSA, 0.0)
    centred = np.where(mdps.legal_MSA, value - value.sum(axis=2, keepdims=True) / count, 0.0)
    spread = np.sqrt((centred**2).sum(axis=2, keepdims=True) / count)
    return np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12)
