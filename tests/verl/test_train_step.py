"""The real ``_train_step`` of Agent Lightning with verl's real actor on a tiny Qwen2.

Only the worker group is a stand-in: it calls the actor in this process instead of through Ray.
"""

from __future__ import annotations

import copy
import types
from typing import Any

import numpy as np
import pytest
import torch
from agentlightning.verl.daemon import AgentModeDaemon
from agentlightning.verl.dataset import LoadedDataset
from agentlightning.verl.trainer import AgentLightningTrainer
from transformers import Qwen2Config, Qwen2ForCausalLM
from verl import DataProto
from verl.trainer.ppo.utils import Role
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.actor.dp_actor import DataParallelPPOActor

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


def tiny_qwen2() -> Qwen2ForCausalLM:
    torch.manual_seed(0)
    size = Qwen2Config(
        vocab_size=300,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
    )
    return Qwen2ForCausalLM(size)


class Workers:
    """One worker of the actor's group, in this process."""

    world_size = 1

    def __init__(self, config: Any) -> None:
        actor = copy.deepcopy(config.actor_rollout_ref.actor)
        actor.ppo_mini_batch_size *= config.actor_rollout_ref.rollout.n
        self.model = tiny_qwen2()
        self.reference = tiny_qwen2()
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=actor.optim.lr)
        dataclass = omega_conf_to_dataclass(actor)
        self.actor = DataParallelPPOActor(dataclass, self.model, optimizer)
        self.ref = DataParallelPPOActor(dataclass, self.reference)
        self.updates: list[DataProto] = []

    def compute_log_prob(self, batch: DataProto) -> DataProto:
        log_probs, entropys = self.actor.compute_log_prob(self._sized(batch), calculate_entropy=True)
        return DataProto.from_dict(tensors={"old_log_probs": log_probs, "entropys": entropys})

    def compute_ref_log_prob(self, batch: DataProto) -> DataProto:
        log_probs, _ = self.ref.compute_log_prob(self._sized(batch))
        return DataProto.from_dict(tensors={"ref_log_prob": log_probs})

    def update_actor(self, batch: DataProto) -> DataProto:
        self.updates.append(batch)
        return DataProto(meta_info={"metrics": self.actor.update_policy(self._sized(batch))})

    def _sized(self, batch: DataProto) -> DataProto:
        batch.meta_info |= {"micro_batch_size": 8, "temperature": 1.0, "use_dynamic_bsz": False}
        return batch


class Engine:
    """The inference engine's manager; scripted rollouts need none."""

    server_addresses = ("127.0.0.1:1",)

    def wake_up(self) -> None:
        pass

    def sleep(self) -> None:
        pass


@pytest.fixture(scope="module", autouse=True)
def process_group(tmp_path_factory):
    store = tmp_path_factory.mktemp("gloo") / "store"
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.fixture
def make_trainer(make_stage):
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
        trainer.actor_rollout_wg = Workers(algorithm.config)
        trainer.ref_policy_wg = trainer.actor_rollout_wg
        trainer.async_rollout_manager = Engine()
        trainer.agent_mode_daemon = stage.daemon
        trainer.global_steps = 1
        trainer.played = {}
        return trainer, stage

    return build


def train_one_step(trainer) -> dict[str, Any]:
    return trainer._train_step(next(iter(trainer.train_dataloader)))


def weights(trainer) -> torch.Tensor:
    parameters = trainer.actor_rollout_wg.model.parameters()
    return torch.cat([parameter.detach().flatten() for parameter in parameters]).clone()


def test_parameters_move_and_move_differently_under_milegpo_and_grpo(make_trainer, walks):
    moves = {}
    for stock in (False, True):
        torch.manual_seed(0)
        trainer, _ = make_trainer(walks, stock=stock)
        before = weights(trainer)
        metrics = train_one_step(trainer)
        moves[stock] = weights(trainer) - before
        assert moves[stock].abs().max() > 0
        assert np.isfinite(metrics["actor/grad_norm"])
    assert torch.nn.functional.cosine_similarity(moves[False], moves[True], dim=0) < 0.9


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
