"""The estimators that MileGPO is compared with, on the same batch.

Axes: ``_K`` rollouts, ``_S`` steps.
"""

from __future__ import annotations

import numpy as np

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit.advantages import Advantages, episode_advantages, normalize
from milegpo_plugin.credit.segments import Segments, ratio
from milegpo_plugin.groups import Batch, Floats, Ints


def grpo_advantages(batch: Batch, config: CreditConfig) -> Advantages:
    """GRPO (arXiv 2402.03300): Norm_q(Z) for every step of the rollout."""
    episode_S = episode_advantages(batch, config)
    return Advantages(advantage_S=episode_S, episode_advantage_S=episode_S)


def rloo_advantages(batch: Batch) -> Advantages:
    """RLOO (arXiv 2402.14740): Z minus the mean Z of the group's other rollouts, for every step."""
    groups = Segments.of_ascending(batch.group_K)
    size_K = groups.spread(groups.size_Y)
    centred_K = normalize(batch.score_K, groups, "mean")
    episode_S = ratio(centred_K * size_K, size_K - 1)[batch.rollout_S]
    return Advantages(advantage_S=episode_S, episode_advantage_S=episode_S)


def gigpo_advantages(batch: Batch, config: CreditConfig) -> Advantages:
    """GiGPO (arXiv 2505.10978): Norm of the return-to-go among steps at one state, plus Norm_q(Z)."""
    returns_S = discounted_returns(batch, config.gigpo_discount)
    step_S = normalize(returns_S, Segments.of(batch.source_S), config.norm)
    episode_S = episode_advantages(batch, config)
    return Advantages(
        advantage_S=config.step_weight * step_S + config.episode_weight * episode_S,
        step_advantage_S=step_S,
        episode_advantage_S=episode_S,
    )


def hgpo_advantages(batch: Batch, config: CreditConfig) -> Advantages:
    """HGPO (arXiv 2602.22817): return-to-go normalised in nested groups of equal recent histories.

    Level k compares the steps that share their last k + 1 states, with the population std. Levels
    where a step is alone or its advantage is exactly 0 are left out; the others are averaged with
    weights (k + 1)^alpha. There is no episode term unless ``hgpo_episode_weight`` asks for one.
    """
    returns_S = discounted_returns(batch, config.gigpo_discount)
    total_S, weight_S = np.zeros(len(returns_S)), np.zeros(len(returns_S))
    for level, history_S in enumerate(_nested_histories(batch, config.hgpo_history)):
        value_S = normalize(returns_S, Segments.of(history_S), config.norm, ddof=0)
        weight = (level + 1.0) ** config.hgpo_alpha
        total_S += weight * value_S
        weight_S += weight * (value_S != 0)
    step_S = ratio(total_S, weight_S)
    if config.hgpo_episode_weight == 0:
        return Advantages(config.step_weight * step_S, step_S)
    episode_S = episode_advantages(batch, config)
    advantage_S = config.step_weight * step_S + config.hgpo_episode_weight * episode_S
    return Advantages(advantage_S, step_S, episode_S)


def discounted_returns(batch: Batch, discount: float) -> Floats:
    """Return-to-go of every step: r_t + g r_(t+1) + g^2 r_(t+2) + …, by doubling the horizon. Shape (S,)."""
    remaining_S = batch.offset_K[1:][batch.rollout_S] - np.arange(len(batch.rollout_S))
    returns_S, horizon = batch.reward_S.copy(), 1
    while horizon < remaining_S.max(initial=0):
        reaches = np.flatnonzero(remaining_S > horizon)
        returns_S[reaches] += discount**horizon * returns_S[reaches + horizon]
        horizon *= 2
    return returns_S


def _nested_histories(batch: Batch, longest: int) -> list[Ints]:
    """Ids of the last 1, 2, …, longest + 1 states of every step; shorter at a rollout's start."""
    position_S = np.arange(len(batch.rollout_S))
    age_S = position_S - batch.offset_K[batch.rollout_S]
    histories = [batch.source_S]
    for back in range(1, longest + 1):
        earlier_S = np.where(age_S >= back, batch.source_S[position_S - np.minimum(back, age_S)] + 1, 0)
        pair_S = histories[-1] * (len(batch.group_N) + 1) + earlier_S
        histories.append(np.unique(pair_S, return_inverse=True)[1])
    return histories
