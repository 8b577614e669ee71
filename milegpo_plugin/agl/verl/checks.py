"""Settings of verl that step credit needs, allows or refuses; each error names the line to change."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from omegaconf import DictConfig, OmegaConf

from milegpo_plugin.agl.settings import LEVELS
from milegpo_plugin.agl.verl.estimator import ESTIMATOR
from milegpo_plugin.config import CreditConfig
from milegpo_plugin.errors import ConfigError

logger = logging.getLogger(__name__)

CRITIC_ESTIMATORS: Final = ("gae", "remax")
"""Estimators of verl that need a critic or a second, greedy rollout."""


def prepare_config(config: DictConfig, given: Mapping[str, Any], credit: CreditConfig) -> None:
    """Set what ``MileGPO`` decides, and check the rest.

    Args:
        config: verl's composed config; changed in place.
        given: what the user wrote, to tell a wish from a default.
        credit: the settings of the credit, recorded in the config for the tracker.

    Raises:
        ConfigError: a setting contradicts step credit.
    """
    _check_estimator(_lookup(given, "algorithm.adv_estimator"))
    _check_norm(_lookup(given, "algorithm.norm_adv_by_std_in_grpo"), credit)
    config.algorithm.adv_estimator = ESTIMATOR
    config.algorithm.norm_adv_by_std_in_grpo = credit.norm == "mean_std"
    config.agentlightning.milegpo = OmegaConf.create(credit.model_dump(mode="json"))
    _check_rollouts(config)
    _check_rewards(config)
    _check_batches(config)


def _check_estimator(asked: str | None) -> None:
    if asked in CRITIC_ESTIMATORS:
        raise ConfigError(
            f"algorithm.adv_estimator: {asked} needs a critic or a baseline rollout, which step credit "
            f"replaces: leave it out (it becomes {ESTIMATOR}), or use agentlightning's VERL"
        )
    if asked not in (None, ESTIMATOR):
        logger.info("algorithm.adv_estimator=%s becomes %s; MileGPO(estimator=…) chooses", asked, ESTIMATOR)


def _check_norm(asked: bool | None, credit: CreditConfig) -> None:
    if asked is not None and bool(asked) != (credit.norm == "mean_std"):
        wanted = "mean_std" if asked else "mean"
        raise ConfigError(
            f"algorithm.norm_adv_by_std_in_grpo: must agree with the credit's norm={credit.norm!r}, "
            f"got {asked!r}: set norm={wanted!r} in the credit, or leave it out"
        )


def _check_rollouts(config: DictConfig) -> None:
    rollout = config.actor_rollout_ref.rollout
    if rollout.n < 2:
        raise ConfigError(
            f"actor_rollout_ref.rollout.n must be at least 2 (rollouts of a task are compared), got {rollout.n}"
        )
    if rollout.mode != "async":
        raise ConfigError(
            f"actor_rollout_ref.rollout.mode must be async (agents call a server), got {rollout.mode!r}"
        )
    if OmegaConf.is_missing(rollout, "name"):
        raise ConfigError("actor_rollout_ref.rollout.name is missing: set it to vllm")
    level = config.agentlightning.trace_aggregator.level
    if level not in LEVELS:
        raise ConfigError(
            f"agentlightning.trace_aggregator.level must be {' or '.join(LEVELS)}, got {level!r}"
        )


def _check_rewards(config: DictConfig) -> None:
    if config.algorithm.use_kl_in_reward:
        raise ConfigError(
            "algorithm.use_kl_in_reward: the penalty would be added to finished advantages, not to rewards: "
            "set it to false and use actor_rollout_ref.actor.use_kl_loss=true with kl_loss_coef"
        )
    if config.critic.get("enable"):
        raise ConfigError("critic.enable: step credit has no value function: leave it out")
    if config.reward_model.get("enable"):
        raise ConfigError(
            "reward_model.enable: its scores would be ignored: return the reward from the agent, or emit it"
        )


def _check_batches(config: DictConfig) -> None:
    gpus = config.trainer.n_gpus_per_node * config.trainer.nnodes
    actor = config.actor_rollout_ref.actor
    if actor.ppo_mini_batch_size % gpus:
        raise ConfigError(
            f"actor_rollout_ref.actor.ppo_mini_batch_size must be divisible by the {gpus} GPUs, because the "
            f"platform rounds the rows of a step down to it, got {actor.ppo_mini_batch_size}"
        )


def _lookup(values: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path of what the user wrote; None when it is not there."""
    found = OmegaConf.select(OmegaConf.create(dict(values)), path)
    return None if found is None else found
