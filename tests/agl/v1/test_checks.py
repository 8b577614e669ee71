from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest

from milegpo_plugin.agl.v1.checks import HOOK, UPSTREAM_HOOK, check_config, require_releases
from milegpo_plugin.errors import ConfigError, MissingDependencyError


def config(**changes: Any) -> dict[str, Any]:
    """A config that is fine, with dotted keys changed (``__`` for a dot)."""
    tree: dict[str, Any] = {
        "algorithm": {"use_kl_in_reward": False},
        "critic": {"enable": None},
        "agentlightning": {"trace_aggregator": {"level": "trajectory"}},
        "actor_rollout_ref": {
            "rollout": {"n": 8},
            "actor": {"policy_loss": {"loss_mode": "per_rollout_mean"}},
        },
        "ray_kwargs": {"ray_init": {"runtime_env": {"worker_process_setup_hook": None}}},
    }
    for key, value in changes.items():
        *path, last = key.split("__")
        node = tree
        for part in path:
            node = node[part]
        node[last] = value
    return tree


def test_the_defaults_of_agent_lightning_pass() -> None:
    check_config(config())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agentlightning__trace_aggregator__level": "turn"}, "must be transition or trajectory, got 'turn'"),
        ({"actor_rollout_ref__rollout__n": 1}, r"rollout\.n must be 2 or more, got 1"),
        ({"algorithm__use_kl_in_reward": True}, r"use actor_rollout_ref\.actor\.use_kl_loss=true"),
        ({"critic__enable": True}, r"critic\.enable must not be true, got True"),
        ({"actor_rollout_ref__actor__policy_loss__loss_mode": "geo_mean"}, "must not be geo_mean"),
        ({"ray_kwargs__ray_init__runtime_env__worker_process_setup_hook": "mine.hook"}, "pass own_hook=True"),
    ],
    ids=["level", "one rollout", "KL in reward", "critic", "row loss", "another hook"],
)
def test_what_would_lose_step_credit_is_refused_with_the_key_and_the_cure(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        check_config(config(**changes))


def test_every_refused_key_is_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"rollout\.n.*; .*use_kl_in_reward"):
        check_config(config(actor_rollout_ref__rollout__n=1, algorithm__use_kl_in_reward=True))


@pytest.mark.parametrize("hook", [HOOK, UPSTREAM_HOOK])
def test_our_hook_and_the_one_that_it_calls_are_welcome(hook: str) -> None:
    check_config(config(ray_kwargs__ray_init__runtime_env__worker_process_setup_hook=hook))


def test_a_hook_of_the_users_own_is_welcome_when_it_calls_ours() -> None:
    hooked = config(ray_kwargs__ray_init__runtime_env__worker_process_setup_hook="mine.hook")
    check_config(hooked, own_hook=True)


def test_a_loss_that_averages_rows_is_fine_when_a_row_is_one_call() -> None:
    changes = {
        "agentlightning__trace_aggregator__level": "transition",
        "actor_rollout_ref__actor__policy_loss__loss_mode": "geo_mean",
    }
    check_config(config(**changes))


def test_the_release_that_this_was_made_for_passes() -> None:
    require_releases({"agentlightning": "1.0.2", "verl": "0.8.0"}.__getitem__)


@pytest.mark.parametrize(
    ("installed", "words"),
    [
        ({"agentlightning": "0.3.0", "verl": "0.6.1"}, r"got 0\.3\.0: with 0\.3 use Trainer"),
        ({"agentlightning": "1.1.0", "verl": "0.8.0"}, r"agentlightning must be 1\.0\.x .* got 1\.1\.0$"),
        ({"agentlightning": "1.0.2", "verl": "0.9.1"}, r"verl must be 0\.8\.x .* got 0\.9\.1$"),
    ],
)
def test_another_release_is_refused_by_name(installed: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        require_releases(installed.__getitem__)


def test_a_missing_package_is_named() -> None:
    def find(name: str) -> str:
        raise PackageNotFoundError(name)

    with pytest.raises(MissingDependencyError, match=r"agentlightning 1\.0\.x is not installed"):
        require_releases(find)
