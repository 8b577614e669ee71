"""The private names of Agent Lightning 1.0.x and verl 0.8 that the plugin leans on.

When upstream moves, this file fails first, and says what moved.
"""

from __future__ import annotations

import inspect

from agentlightning.verl import entrypoint, trainer
from agentlightning.verl.agl_rollout_manager import CompletedRollout, Triplet
from agentlightning.verl.per_rollout_loss import register_in_worker
from agentlightning.verl.rollout_adapter import RolloutAdapter
from verl.trainer.ppo.core_algos import get_adv_estimator_fn, register_adv_est
from verl.trainer.ppo.ray_trainer import compute_advantage

from milegpo_plugin.agl.v1.checks import UPSTREAM_HOOK


def test_a_configured_worker_hook_goes_before_upstreams_own() -> None:
    source = inspect.getsource(entrypoint.run_ppo)
    assert 'runtime_env.setdefault(\n            "worker_process_setup_hook"' in source
    assert UPSTREAM_HOOK in source
    assert f"{register_in_worker.__module__}.{register_in_worker.__name__}" == UPSTREAM_HOOK


def test_the_task_runner_looks_the_trainer_up_when_it_runs() -> None:
    source = inspect.getsource(entrypoint)
    assert "from agentlightning.verl.trainer import AgentLightningRayPPOTrainer" in source
    assert "AgentLightningRayPPOTrainer" not in vars(entrypoint)


def test_the_trainer_looks_its_adapter_up_in_its_module() -> None:
    source = inspect.getsource(trainer.AgentLightningRayPPOTrainer._rollout)
    assert "rollout_adapter = RolloutAdapter(" in source
    assert trainer.RolloutAdapter is RolloutAdapter


def test_a_step_drops_rows_only_after_the_adapter_and_before_the_advantages() -> None:
    source = inspect.getsource(trainer.AgentLightningRayPPOTrainer._train_step)
    places = [
        source.index(part)
        for part in ("self._rollout(", '"is_drop_mask"', "_same_reward_uid_indices", "compute_advantage(")
    ]
    assert places == sorted(places)
    assert 'get("enable_rollout_level_advantage", False)' in source
    assert list(inspect.signature(trainer.AgentLightningRayPPOTrainer._train_step).parameters) == [
        "self",
        "timing_raw",
        "curr_step_profile",
    ]


def test_the_adapter_takes_and_gives_what_ours_does() -> None:
    parameters = inspect.signature(RolloutAdapter.get_train_data_batch).parameters
    assert list(parameters) == ["self", "completed_rollouts", "global_steps"]
    fields = ("max_prompt_length", "max_response_length", "max_total_length", "trace_aggregator_level")
    assert set(fields) <= inspect.signature(RolloutAdapter).parameters.keys()


def test_finished_rollouts_have_the_fields_that_are_read() -> None:
    read = {"rollout_id", "data_id", "events", "triplets", "rollout_state", "error_message"}
    assert read <= CompletedRollout.model_fields.keys()
    assert {"prompt", "response"} <= Triplet.model_fields.keys()


def test_verl_hands_an_estimator_rewards_and_mask_by_name() -> None:
    source = inspect.getsource(compute_advantage)
    assert '"token_level_rewards": data.batch["token_level_rewards"]' in source
    assert '"response_mask": data.batch["response_mask"]' in source
    assert callable(register_adv_est)
    assert callable(get_adv_estimator_fn)
