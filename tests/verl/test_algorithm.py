"""What ``MileGPO`` takes, sets and refuses."""

from __future__ import annotations

import copy
import pickle
from importlib.metadata import PackageNotFoundError
from typing import Any

import agentlightning
import cloudpickle
import pytest
from agentlightning.store.memory import InMemoryLightningStore
from omegaconf import OmegaConf
from verl.trainer.ppo.core_algos import get_adv_estimator_fn

from milegpo_plugin import CreditConfig, MileGPO
from milegpo_plugin.agl.verl.estimator import register_estimator, spread_step_advantages
from milegpo_plugin.agl.verl.paper import PAPER_CONFIG
from milegpo_plugin.agl.verl.versions import require_versions
from milegpo_plugin.errors import ConfigError, MissingDependencyError

GOOD: dict[str, Any] = {
    "actor_rollout_ref": {"rollout": {"name": "vllm", "n": 8}},
    "data": {"train_batch_size": 16},
    "trainer": {"n_gpus_per_node": 4},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    config = OmegaConf.create(copy.deepcopy(GOOD))
    OmegaConf.update(config, path, value, force_add=True)
    return OmegaConf.to_container(config)


def test_the_config_of_verl_is_taken_as_it_is_and_the_estimator_is_set():
    algorithm = MileGPO(changed("algorithm.adv_estimator", "grpo"), credit="webshop")
    assert algorithm.config.algorithm.adv_estimator == "milegpo"
    assert algorithm.config.actor_rollout_ref.rollout.n == 8
    assert algorithm.config.agentlightning.milegpo.mix_weight == 1.0


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("actor_rollout_ref.rollout.n", 1, r"rollout\.n must be at least 2 .*got 1"),
        ("actor_rollout_ref.rollout.mode", "sync", r"rollout\.mode must be async .*got 'sync'"),
        ("actor_rollout_ref.rollout.name", "???", r"rollout\.name is missing: set it to vllm"),
        ("agentlightning.trace_aggregator.level", "token", r"must be transition or trajectory, got 'token'"),
        ("algorithm.adv_estimator", "gae", "gae needs a critic"),
        ("algorithm.adv_estimator", "remax", "remax needs a critic or a baseline rollout"),
        ("algorithm.use_kl_in_reward", True, r"use actor_rollout_ref\.actor\.use_kl_loss=true"),
        (
            "algorithm.norm_adv_by_std_in_grpo",
            False,
            "must agree with the credit's norm='mean_std', got False",
        ),
        ("critic.enable", True, "has no value function"),
        ("reward_model.enable", True, "scores would be ignored"),
        ("actor_rollout_ref.actor.ppo_mini_batch_size", 6, "must be divisible by the 4 GPUs.*got 6"),
    ],
)
def test_what_contradicts_step_credit_is_refused_with_the_line_to_change(path, value, message):
    with pytest.raises(ConfigError, match=message):
        MileGPO(changed(path, value))


def test_norm_adv_by_std_follows_the_credit():
    assert MileGPO(GOOD, credit="webshop").config.algorithm.norm_adv_by_std_in_grpo is False
    agreed = changed("algorithm.norm_adv_by_std_in_grpo", False)
    assert MileGPO(agreed, credit="webshop").config.algorithm.norm_adv_by_std_in_grpo is False


def test_keywords_win_over_the_credit():
    algorithm = MileGPO(
        GOOD,
        credit={"preset": "webshop", "mix_weight": 0.3},
        estimator="gigpo",
        on_failed="zero",
        states={"history": 2},
    )
    credit = algorithm.settings.credit
    assert (credit.norm, credit.mix_weight) == ("mean", 0.3)
    assert (credit.estimator, credit.on_failure, credit.states.history) == ("gigpo", "zero", 2)
    same = MileGPO(GOOD, credit=CreditConfig.preset("webshop"), estimator="grpo").settings.credit
    assert same == CreditConfig.preset("webshop", estimator="grpo")


@pytest.mark.parametrize("credit", ["web", {"eta": 7}, 3])
def test_a_bad_credit_is_refused(credit):
    with pytest.raises(ConfigError):
        MileGPO(GOOD, credit=credit)


def test_the_dotted_string_trains_the_papers_set_up():
    algorithm = agentlightning.Trainer(algorithm="milegpo_plugin.MileGPO", n_runners=1).algorithm
    config = algorithm.config
    assert config.actor_rollout_ref.model.path == "Qwen/Qwen2.5-1.5B-Instruct"
    assert (config.data.train_batch_size, config.actor_rollout_ref.rollout.n) == (16, 8)
    assert config.trainer.total_training_steps == 300
    assert (config.actor_rollout_ref.actor.optim.lr, config.actor_rollout_ref.actor.kl_loss_coef) == (
        1e-6,
        0.01,
    )


def test_constructing_twice_leaves_the_papers_config_alone():
    before = copy.deepcopy(PAPER_CONFIG)
    MileGPO()
    assert before == PAPER_CONFIG


def test_a_mapping_with_a_type_works_as_an_option_of_the_platform():
    option = {"type": "milegpo_plugin.MileGPO", "config": GOOD, "credit": "alfworld"}
    assert agentlightning.Trainer(algorithm=option, n_runners=1).algorithm.settings.credit.mix_weight == 0.2


def test_everything_for_the_ray_driver_survives_pickling():
    algorithm = MileGPO(GOOD, credit="webshop", dump_dir="runs/x")
    daemon_cls = pickle.loads(cloudpickle.dumps(algorithm.daemon_cls))
    assert daemon_cls.keywords["settings"] == algorithm.settings
    assert pickle.loads(cloudpickle.dumps(algorithm.trainer_cls)) is algorithm.trainer_cls


def test_without_the_platform_around_it_it_says_how_to_start():
    with pytest.raises(ConfigError, match=r"runs inside agentlightning\.Trainer"):
        MileGPO(GOOD).run([{}], [{}])


def test_a_store_that_lives_in_one_process_is_refused():
    algorithm = MileGPO(GOOD)
    algorithm.set_store(InMemoryLightningStore(thread_safe=True))
    with pytest.raises(ConfigError, match=r"use Trainer\(strategy='cs'\)"):
        algorithm.run([{}], [{}])


def test_the_estimator_is_known_to_verl_and_may_be_registered_again():
    register_estimator()
    register_estimator()
    assert get_adv_estimator_fn("milegpo") is spread_step_advantages


def installed(**versions: str) -> Any:
    def find(name: str) -> str:
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    return find


def test_releases_that_work_are_accepted():
    require_versions(installed(verl="0.6.1+cu128", agentlightning="0.3.0"))


@pytest.mark.parametrize("release", ["0.5.0", "0.8.0", "0.9.1"])
def test_other_releases_of_verl_are_refused_by_name(release):
    with pytest.raises(ConfigError, match=rf"verl must be 0\.6\.1.*, got {release}"):
        require_versions(installed(verl=release, agentlightning="0.3.0"))


def test_other_releases_of_the_platform_are_refused_by_name():
    with pytest.raises(ConfigError, match=r"agentlightning must be 0\.3\.x for MileGPO, got 1\.0\.2"):
        require_versions(installed(verl="0.6.1", agentlightning="1.0.2"))


def test_a_missing_verl_says_what_to_install():
    with pytest.raises(MissingDependencyError, match=r"needs verl: pip install 'milegpo-plugin\[gpu\]'"):
        require_versions(installed(agentlightning="0.3.0"))
