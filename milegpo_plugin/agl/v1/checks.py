"""What the trainer's config must say for step credit, and why anything else is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, NamedTuple

from milegpo_plugin.agl.settings import LEVELS
from milegpo_plugin.agl.v1.omega import select
from milegpo_plugin.errors import ConfigError, MissingDependencyError

HOOK: Final = "milegpo_plugin.agl.v1.worker.setup_worker"
UPSTREAM_HOOK: Final = "agentlightning.verl.per_rollout_loss.register_in_worker"
HOOK_KEY: Final = "ray_kwargs.ray_init.runtime_env.worker_process_setup_hook"
LEVEL_KEY: Final = "agentlightning.trace_aggregator.level"
LOSS_KEY: Final = "actor_rollout_ref.actor.policy_loss.loss_mode"
ROLLOUTS_KEY: Final = "actor_rollout_ref.rollout.n"

SERIES: Final = {"agentlightning": "1.0.", "verl": "0.8."}
"""Releases that this seam was tried with."""

ROW_LOSSES: Final = frozenset({"geo_mean"})
"""Losses of verl that average the advantages of a row before they use them."""


class Rule(NamedTuple):
    """One key, what it must be, and what to do about it."""

    key: str
    must: str
    holds: Callable[[Any], bool]
    cure: str


RULES: Final = (
    Rule(
        LEVEL_KEY,
        f"must be {' or '.join(LEVELS)}",
        lambda value: value in LEVELS,
        "set it to one of them; both keep the credit of each step",
    ),
    Rule(
        ROLLOUTS_KEY,
        "must be 2 or more",
        lambda value: isinstance(value, int) and value > 1,
        "a rollout is compared with the others of its task",
    ),
    Rule(
        "algorithm.use_kl_in_reward",
        "must be false",
        lambda value: not value,
        "the advantages are final when the penalty would be added; use actor_rollout_ref.actor.use_kl_loss=true",
    ),
    Rule(
        "critic.enable",
        "must not be true",
        lambda value: not value,
        "the advantages need no critic, and its values would be ignored; remove the key",
    ),
)


def check_config(config: Mapping[str, Any], *, own_hook: bool = False) -> None:
    """Refuse a config under which step credit would be lost or wrong.

    Args:
        config: the trainer's config.
        own_hook: the worker hook is the user's and calls ours.

    Raises:
        ConfigError: names every key that is refused, its value, and what to do.
    """
    refusals = [*_broken_rules(config), *_lost_steps(config)]
    hook = select(config, HOOK_KEY)
    if hook not in (None, HOOK, UPSTREAM_HOOK) and not own_hook:
        refusals.append(
            f"{HOOK_KEY} is already set, got {hook!r}: call {HOOK}() in your hook and pass own_hook=True"
        )
    if refusals:
        raise ConfigError("; ".join(refusals))


def require_releases(find: Callable[[str], str] = version) -> None:
    """Refuse releases of Agent Lightning and verl that this seam was not made for.

    Raises:
        MissingDependencyError: one of them is not installed.
        ConfigError: another series is installed.
    """
    for name, series in SERIES.items():
        try:
            found = find(name)
        except PackageNotFoundError as error:
            raise MissingDependencyError(
                f"{name} {series}x is not installed: see docs/agent_lightning_versions.md"
            ) from error
        if not found.startswith(series):
            raise ConfigError(
                f"{name} must be {series}x for milegpo_plugin.agl.v1, got {found}{_advice(name, found)}"
            )


def _advice(name: str, found: str) -> str:
    if name == "agentlightning" and found.startswith("0."):
        return ": with 0.3 use Trainer(algorithm=milegpo_plugin.MileGPO(...))"
    return ""


def require_no_ray() -> None:
    """Refuse a process that already joined Ray: the trainer's processes would lack our hook.

    Raises:
        ConfigError: ``ray.init`` was called before.
    """
    import ray

    if ray.is_initialized():
        raise ConfigError(
            "Ray is already initialised in this process, so run_ppo skips the worker hook and the trainer "
            "knows no estimator 'milegpo': remove your ray.init (run_ppo joins a running cluster by itself), "
            f"or pass it runtime_env={{'worker_process_setup_hook': {HOOK!r}}} and call configure before it"
        )


def _broken_rules(config: Mapping[str, Any]) -> Iterator[str]:
    for rule in RULES:
        value = select(config, rule.key)
        if not rule.holds(value):
            yield f"{rule.key} {rule.must}, got {value!r}: {rule.cure}"


def _lost_steps(config: Mapping[str, Any]) -> Iterator[str]:
    loss = select(config, LOSS_KEY)
    if loss in ROW_LOSSES and select(config, LEVEL_KEY) == "trajectory":
        yield (
            f"{LOSS_KEY} must not be {loss} at {LEVEL_KEY}=trajectory: it averages the advantages of all steps "
            f"of a row; use per_rollout_mean, or {LEVEL_KEY}=transition"
        )
