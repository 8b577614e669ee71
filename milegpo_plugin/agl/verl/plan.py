"""What a run would do, worked out without a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from omegaconf import DictConfig

from milegpo_plugin.agl.settings import BackendSettings
from milegpo_plugin.agl.verl.settings import StepEstimate
from milegpo_plugin.agl.verl.versions import INSTALL, installed_or_none

PACKAGES = ("agentlightning", "verl", "vllm", "torch", "transformers", "ray")


@dataclass(frozen=True, slots=True)
class Plan:
    """The resolved run: lines to read, and what this machine lacks to train."""

    lines: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.lines)
        text = [f"{name:<{width}}  {value}" for name, value in self.lines]
        text += [f"{'missing':<{width}}  {item}" for item in self.missing]
        return "\n".join(text)


def make_plan(
    config: DictConfig, settings: BackendSettings, steps: StepEstimate | None, train_tasks: int | None
) -> Plan:
    """Sizes and estimates of a run.

    Args:
        config: the checked config of verl.
        settings: the backend's own settings.
        steps: model calls of a rollout; without it rows cannot be estimated.
        train_tasks: size of the training set, None when unknown.
    """
    lines = [
        ("versions", _versions()),
        ("model", config.actor_rollout_ref.model.path),
        ("credit", _credit(settings)),
        ("rollouts", _rollouts(config)),
        ("rows", _rows(config, steps)),
        ("tokens", _tokens(config)),
        ("updates", _updates(config, steps)),
        ("objective", _objective(config)),
        ("steps", _total_steps(config, train_tasks)),
        (
            "hardware",
            f"{config.trainer.nnodes} × {config.trainer.n_gpus_per_node} GPU, {torch.cuda.device_count()} here",
        ),
        ("dump", str(settings.dump_dir or "none")),
    ]
    return Plan(tuple(lines), tuple(_missing(config)))


def rollouts_per_step(config: DictConfig) -> int:
    """Tasks of a batch times rollouts of a task."""
    return int(config.data.train_batch_size * config.actor_rollout_ref.rollout.n)


def _versions() -> str:
    return ", ".join(f"{name} {installed_or_none(name) or 'not installed'}" for name in PACKAGES)


def _credit(settings: BackendSettings) -> str:
    credit = settings.credit
    changed = credit.model_dump(mode="json", exclude_defaults=True)
    own = ", ".join(f"{name}={value}" for name, value in changed.items() if name != "estimator")
    return f"{credit.estimator} ({own or 'defaults'})"


def _rollouts(config: DictConfig) -> str:
    n = config.actor_rollout_ref.rollout.n
    return f"{config.data.train_batch_size} tasks × {n} = {rollouts_per_step(config)} a step"


def _rows(config: DictConfig, steps: StepEstimate | None) -> str:
    count = rollouts_per_step(config)
    if config.agentlightning.trace_aggregator.level == "trajectory":
        return f"about {count} a step (one conversation each, more where a history is rewritten)"
    if steps is None:
        return f"{count} × model calls of a rollout (set steps_per_rollout for an estimate)"
    return f"about {count * steps.typical} a step, at most {count * steps.most} (one model call each)"


def _tokens(config: DictConfig) -> str:
    prompt, response = row_limits(config)
    return f"at most {prompt} + {response} a row"


def row_limits(config: DictConfig) -> tuple[int, int]:
    """Padded prompt and response of a row, as Agent Lightning's trainer chooses them."""
    aggregator = config.agentlightning.trace_aggregator
    if aggregator.level == "trajectory":
        return aggregator.trajectory_max_prompt_length, aggregator.trajectory_max_response_length
    return config.data.max_prompt_length, config.data.max_response_length


def _updates(config: DictConfig, steps: StepEstimate | None) -> str:
    """Mini-batches as the workers of verl see them: they multiply the size by rollout.n."""
    actor = config.actor_rollout_ref.actor
    rows = actor.ppo_mini_batch_size * config.actor_rollout_ref.rollout.n
    text = f"mini-batches of {rows} rows"
    if steps is None or config.agentlightning.trace_aggregator.level == "trajectory":
        return text
    return f"{text}, about {max(rollouts_per_step(config) * steps.typical // rows, 1)} a step"


def _objective(config: DictConfig) -> str:
    actor = config.actor_rollout_ref.actor
    kl = f"KL loss {actor.kl_loss_coef:g} ({actor.kl_loss_type})" if actor.use_kl_loss else "no KL loss"
    return f"learning rate {actor.optim.lr:g}, clip {actor.clip_ratio_low:g}/{actor.clip_ratio_high:g}, {kl}"


def _total_steps(config: DictConfig, train_tasks: int | None) -> str:
    asked: Any = config.trainer.get("total_training_steps")
    if train_tasks is None:
        return f"{asked}" if asked else f"{config.trainer.total_epochs} epochs"
    available = train_tasks // config.data.train_batch_size * config.trainer.total_epochs
    return f"{min(asked, available) if asked else available} ({train_tasks} tasks)"


def _missing(config: DictConfig) -> list[str]:
    found = []
    name = config.actor_rollout_ref.rollout.name
    if installed_or_none(name) is None:
        found.append(f"{name}: {INSTALL}")
    needed = config.trainer.n_gpus_per_node * config.trainer.nnodes
    if torch.cuda.device_count() < config.trainer.n_gpus_per_node:
        found.append(f"{needed} CUDA GPU(s)")
    return found
