"""Prepare the config of Agent Lightning 1.0's verl trainer, or say what stands against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

from milegpo_plugin.agl.settings import resolve_credit
from milegpo_plugin.agl.v1 import agent as user_agent
from milegpo_plugin.agl.v1.checks import HOOK, HOOK_KEY, check_config, require_no_ray, require_releases
from milegpo_plugin.agl.v1.estimator import ESTIMATOR
from milegpo_plugin.agl.v1.omega import plain_section, update
from milegpo_plugin.agl.v1.settings import SECTION, read_settings, write_settings
from milegpo_plugin.config import CreditConfig, StateConfig
from milegpo_plugin.loading import require_file, split_target

Config = TypeVar("Config", bound=Any)
"""An ``omegaconf.DictConfig``."""

SET: Final[dict[str, Any]] = {
    "algorithm.adv_estimator": ESTIMATOR,
    "algorithm.enable_rollout_level_advantage": False,
}
"""Keys that have one right value; rollout-level advantages allow one value a rollout."""


NORM_KEY: Final = "algorithm.norm_adv_by_std_in_grpo"
"""Nobody reads it here; the credit's own ``norm`` decides, and the logged config says the same."""


def configure(
    config: Config,
    credit: CreditConfig | dict[str, Any] | str | None = None,
    *,
    estimator: str | None = None,
    on_failed: str | None = None,
    states: StateConfig | dict[str, Any] | None = None,
    dump_dir: str | Path | None = None,
    own_hook: bool = False,
) -> Config:
    """Make ``run_ppo`` train with step credit; returns ``config``, changed in place.

    Call it right before ``agentlightning.verl.entrypoint.run_ppo``. What a section ``milegpo`` of
    the config says already counts where no argument says otherwise.

    Args:
        config: ``agentlightning/verl/config.yaml`` with your changes.
        credit: a preset (``webshop``, ``alfworld``), a mapping of ``CreditConfig`` fields, or a config.
        estimator: ``milegpo``, ``graphgpo``, ``gigpo``, ``hgpo``, ``grpo``, ….
        on_failed: what to do with failed rollouts: ``drop`` (default), ``zero``, ``keep``.
        states: how observations become states.
        dump_dir: folder for the trajectories and the credit of every step, for ``milegpo report``.
        own_hook: you set ``worker_process_setup_hook`` yourself, and your hook calls ours.

    Raises:
        ConfigError: names every key that stands against step credit and what to do; also when Ray
            is initialised already, or another release is installed.
        MissingDependencyError: Agent Lightning or verl is not installed.
    """
    require_releases()
    require_no_ray()
    check_config(config, own_hook=own_hook)
    values = plain_section(config, SECTION)
    base = credit if credit is not None else values.get("credit")
    resolved = resolve_credit(base, estimator=estimator, on_failed=on_failed, states=states)
    settings = read_settings({**values, "credit": resolved, "dump_dir": dump_dir or values.get("dump_dir")})
    changes = {**SET, NORM_KEY: resolved.norm == "mean_std", SECTION: write_settings(settings)}
    if not own_hook:
        changes[HOOK_KEY] = HOOK
    for key, value in changes.items():
        update(config, key, value)
    return config


def use_agent(config: Config, agent: str, *, reward: str | None = None) -> Config:
    """Let the local controller run an agent as it is; returns ``config``, changed in place.

    Args:
        config: the trainer's config.
        agent: ``FILE.py:FUNCTION``, called with the task (a row of the data set), or ``FILE.py``, run
            as a script with the task as JSON in ``argv[1]``.
        reward: ``FILE.py:FUNCTION``, called as ``reward(task, result)``; None when the agent returns
            its reward.

    Raises:
        InputNotFoundError: a file does not exist.
    """
    variables = {user_agent.AGENT: _absolute(agent), user_agent.TASK: "input"}
    if reward is not None:
        variables[user_agent.REWARD] = _absolute(reward)
    update(config, "agentlightning.local", {"agent_class": user_agent.AGENT_CLASS, "env_map": variables})
    return config


def _absolute(target: str) -> str:
    """The controller runs in a folder of its own, and reads ``input.…`` as a field of the task."""
    path, name = split_target(target)
    if not path.endswith(".py"):
        return target
    return str(require_file(path).absolute()) + (f":{name}" if name else "")
