"""``configure`` and ``use_agent`` on the real config of Agent Lightning 1.0."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import ray
from omegaconf import OmegaConf

from milegpo_plugin.agl.v1 import configure, use_agent
from milegpo_plugin.agl.v1.omega import plain_section
from milegpo_plugin.agl.v1.settings import read_settings
from milegpo_plugin.config import CreditConfig
from milegpo_plugin.errors import ConfigError, InputNotFoundError

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "agl1" / "train.py"


@pytest.fixture(scope="module")
def composed() -> Any:
    return runpy.run_path(str(EXAMPLE))["build_config"]()


@pytest.fixture
def config(composed: Any) -> Any:
    return OmegaConf.create(OmegaConf.to_container(composed, resolve=False))


def credit_of(config: Any) -> CreditConfig:
    return read_settings(plain_section(config, "milegpo")).credit


def test_the_two_keys_and_the_hook_are_set(config: Any) -> None:
    configure(config)
    assert config.algorithm.adv_estimator == "milegpo"
    assert config.algorithm.enable_rollout_level_advantage is False
    hook = config.ray_kwargs.ray_init.runtime_env.worker_process_setup_hook
    assert hook == "milegpo_plugin.agl.v1.worker.setup_worker"


def test_a_config_of_fixed_structure_is_changed_all_the_same(config: Any) -> None:
    OmegaConf.set_struct(config, True)
    assert configure(config, credit="webshop") is config
    assert credit_of(config) == CreditConfig.preset("webshop")
    assert config.algorithm.norm_adv_by_std_in_grpo is False


def test_arguments_win_over_the_section_of_the_config(config: Any) -> None:
    config.milegpo = {"credit": {"preset": "webshop", "estimator": "gigpo"}, "dump_dir": "runs/x"}
    configure(config, on_failed="zero")
    assert credit_of(config) == CreditConfig.preset("webshop", estimator="gigpo", on_failure="zero")
    assert config.milegpo.dump_dir == str(Path("runs/x").absolute())


def test_configuring_twice_changes_nothing(config: Any) -> None:
    once = OmegaConf.to_container(configure(config, credit="webshop"))
    assert OmegaConf.to_container(configure(config)) == once


def test_a_refusal_leaves_the_config_as_it_was(config: Any) -> None:
    config.algorithm.use_kl_in_reward = True
    before = OmegaConf.to_container(config)
    with pytest.raises(ConfigError, match="use_kl_in_reward must be false"):
        configure(config)
    assert OmegaConf.to_container(config) == before


def test_ray_that_was_initialised_before_is_refused(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    with pytest.raises(ConfigError, match=r"Ray is already initialised .* remove your ray\.init"):
        configure(config)


def test_an_agent_is_named_by_its_absolute_path(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    use_agent(config, "agents/coin_player.py:play", reward="examples/agl1/coin_reward.py:found_coin")
    local = config.agentlightning.local
    assert local.agent_class == "milegpo_plugin.agl.v1.agent:UserAgent"
    assert local.env_map == {
        "MILEGPO_AGENT": f"{ROOT}/agents/coin_player.py:play",
        "MILEGPO_REWARD": f"{ROOT}/examples/agl1/coin_reward.py:found_coin",
        "MILEGPO_TASK": "input",
    }


def test_an_agent_that_is_not_there_is_named(config: Any) -> None:
    with pytest.raises(InputNotFoundError, match=r"absent\.py: no such file"):
        use_agent(config, "absent.py:play")


def test_the_example_checks_its_config_without_a_gpu() -> None:
    run = subprocess.run(
        [sys.executable, EXAMPLE, "--dry-run", "agentlightning.trace_aggregator.level=transition"],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = OmegaConf.create(run.stdout[run.stdout.index("algorithm:") :])
    assert shown.algorithm.adv_estimator == "milegpo"
    assert shown.agentlightning.trace_aggregator.level == "transition"
