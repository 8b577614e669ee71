"""The real ``_train_step`` of Agent Lightning with verl's real actor on a tiny Qwen2.

Only the worker group is a stand-in: it calls the actor in this process instead of through Ray.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
import torch
from agentlightning.verl.daemon import AgentModeDaemon
from agentlightning.verl.dataset import LoadedDataset
from agentlightning.verl.trainer import AgentLightningTrainer
from verl.trainer.ppo.utils import Role

from milegpo_plugin import CreditConfig, MileGPO
from milegpo_plugin.agl.verl.trainer import MileGPOTrainer
from milegpo_plugin.credit import assign_credit

CONFIG: dict[str, Any] = {
    "data": {"train_batch_size": 2, "max_prompt_length": 96, "max_response_length": 24},
    "actor_rollout_ref": {
        "rollout": {"name": "scripted", "n": 4, "log_prob_micro_batch_size_per_gpu": 8},
        "actor": {
            "strategy": "fsdp",
            "ppo_mini_batch_size": 4,
            "ppo_micro_batch_size_per_gpu": 4,
            "use_torch_compile": False,
            "optim": {"lr": 1e-2},
            "fsdp_config": {"dtype": "float32"},
        },
    },
    "trainer": {"n_gpus_per_node": 1, "nnodes": 1, "device": "cpu", "balance_batch": False},
}


@pytest.fixture(scope="module", autouse=True)
def process_group(tmp_path_factory, stand_ins):
    stand_ins.start_process_group(str(tmp_path_factory.mktemp("gloo") / "store"))
    yield
    torch.distributed.destroy_process_group()


@pytest.fixture
def make_trainer(make_stage, stand_ins):
    """A trainer around a stage; ``stock`` is Agent Lightning's own GRPO on the same rollouts."""

    def build(script, *, stock: bool = False, level: str = "transition", config: Any = None, **settings: Any):
        algorithm = MileGPO({**CONFIG, **(config or {})})
        if stock:
            algorithm.config.algorithm.adv_estimator = "grpo"
        algorithm.config.agentlightning.trace_aggregator.update(
            level=level, trajectory_max_prompt_length=96, trajectory_max_response_length=120
        )
        options = {"daemon_cls": AgentModeDaemon} if stock else settings
        stage = make_stage(script, mini_batch=4, level=level, **options)
        uses_reference = algorithm.config.actor_rollout_ref.actor.use_kl_loss
        roles = {Role.ActorRollout: object, **({Role.RefPolicy: object} if uses_reference else {})}
        trainer = (AgentLightningTrainer if stock else MileGPOTrainer)(
            config=algorithm.config,
            tokenizer=stage.daemon.tokenizer,
            role_worker_mapping=roles,
            resource_pool_manager=types.SimpleNamespace(get_n_gpus=lambda: 1),
            train_dataset=LoadedDataset([{"task": "a"}, {"task": "b"}]),
            val_dataset=LoadedDataset([{"task": "a"}]),
            store=stage.store,
            llm_proxy=None,
            adapter=None,
            daemon_cls=None,
        )
        trainer.actor_rollout_wg = stand_ins.Workers(algorithm.config)
        trainer.ref_policy_wg = trainer.actor_rollout_wg
        trainer.async_rollout_manager = stand_ins.Engine(["127.0.0.1:1"])
        trainer.agent_mode_daemon = stage.daemon
        trainer.global_steps = 1
        return trainer, stage

    return build


def train_one_step(trainer) -> dict[str, Any]:
    return trainer._train_step(next(iter(trainer.train_dataloader)))


def test_parameters_move_and_move_differently_under_milegpo_and_grpo(make_trainer, walks):
    moves = {}
    for stock in (False, True):
        torch.manual_seed(0)
        trainer, _ = make_trainer(walks, stock=stock)
        before = trainer.actor_rollout_wg.weights()
        metrics = train_one_step(trainer)
        moves[stock] = trainer.actor_rollout_wg.weights() - before
        assert moves[stock].abs().max() > 0
        assert np.isfinite(metrics["actor/grad_norm"])
    assert torch.nn.functional.cosine_similarity(moves[False], moves[True], dim=0) < 0.98


@pytest.mark.parametrize("level", ["transition", "trajectory"])
def test_every_token_is_updated_with_the_advantage_of_its_own_step(make_trainer, merged_walks, level):
    trainer, stage = make_trainer(merged_walks, level=level, credit=CreditConfig.preset("webshop"))
    kept: list[Any] = []
    clear = stage.daemon.clear_data_and_server
    stage.daemon.clear_data_and_server = lambda: (kept.extend(stage.daemon._played.values()), clear())
    train_one_step(trainer)
    trajectories = [played.trajectory for played in kept]
    credit = assign_credit(trajectories, CreditConfig.preset("webshop"))
    expected = {t.rollout_id: credit.advantages(i) for i, t in enumerate(trajectories)}
    (batch,) = trainer.actor_rollout_wg.updates
    assert len(batch) > 0
    for row in range(len(batch)):
        steps = batch.non_tensor_batch["step_indices_list"][row]
        advantage_S = expected[batch.non_tensor_batch["rollout_id_list"][row]][list(steps)]
        mask = batch.batch["response_mask"][row].bool()
        runs = np.flatnonzero(np.diff(np.concatenate([[0], mask.int().numpy(), [0]]))).reshape(-1, 2)
        assert len(runs) == len(steps)
        for (start, end), advantage in zip(runs, advantage_S, strict=True):
            assert set(batch.batch["advantages"][row, start:end].tolist()) == {float(np.float32(advantage))}
        assert not batch.batch["advantages"][row][~mask].any()


def test_the_logger_gets_outcomes_credit_and_their_cost(make_trainer, walks):
    trainer, _ = make_trainer(walks)
    metrics = train_one_step(trainer)
    assert metrics["training/reward"] == metrics["milegpo/outcome_reward"] == 0.5
    assert metrics["critic/score/mean_before_processing"] != 0.5
    assert 0 < metrics["milegpo/credit_share"] < 1
    assert metrics["milegpo/coverage"] == pytest.approx(6 / 7)
    assert metrics["milegpo/milestones_per_group"] == 2.0


def test_a_kl_loss_uses_the_reference_policy(make_trainer, walks):
    actor = {**CONFIG["actor_rollout_ref"]["actor"], "use_kl_loss": True, "kl_loss_coef": 0.01}
    config = {"actor_rollout_ref": {**CONFIG["actor_rollout_ref"], "actor": actor}}
    trainer, _ = make_trainer(walks, config=config)
    metrics = train_one_step(trainer)
    assert metrics["actor/kl_coef"] == 0.01
