"""The adapter between finished rollouts and training rows, with step credit in the rows.

Credit is computed over all rollouts of the batch before the trainer drops rows, so nothing that it
drops later changes a group's statistics.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from agentlightning.verl.rollout_adapter import RolloutAdapter

from milegpo_plugin.agl.dump import dump_step
from milegpo_plugin.agl.figures import (
    PREFIX,
    credit_figures,
    first_problems,
    flag_figures,
    outcome_figures,
    reason_counts,
    step_figures,
    warn_of_singletons,
)
from milegpo_plugin.agl.settings import BackendSettings
from milegpo_plugin.agl.v1.placement import Batch, Placement, RowLimits, place_advantages
from milegpo_plugin.agl.v1.rollouts import Rebuilt, rebuild_rollouts
from milegpo_plugin.agl.v1.segments import Turn
from milegpo_plugin.credit import Credit, assign_credit
from milegpo_plugin.errors import CreditError, TrainingError
from milegpo_plugin.types import Skipped

logger = logging.getLogger(__name__)


class CreditRolloutAdapter(RolloutAdapter):
    """Agent Lightning's adapter, whose rows carry the advantage of each step.

    Args:
        settings: credit, reconstruction, and where to dump.
        rollouts_per_task: rollouts that the trainer starts of each sample.
        kwargs: as the stock adapter's.
    """

    def __init__(self, *, settings: BackendSettings, rollouts_per_task: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings = settings
        self.rollouts_per_task = rollouts_per_task

    def get_train_data_batch(
        self, completed_rollouts: list[Any], *, global_steps: int = 0
    ) -> tuple[Any, dict[str, Any]]:
        """The stock batch with ``token_level_scores`` replaced, and the figures of the credit.

        ``token_level_scores`` [rows, T] is float32 and holds the advantage of its step on every
        token. Rows without credit are marked in ``is_drop_mask``; within a row the tokens of calls
        without credit leave ``response_mask``.

        Raises:
            TrainingError: no rollout has an outcome, none can be used, or there is no row.
        """
        rebuilt = rebuild_rollouts(completed_rollouts, self.settings.reconstruct)
        start = time.perf_counter()
        credit = self._assign(rebuilt, global_steps)
        seconds = time.perf_counter() - start
        turns = {rollout.rollout_id: _turns(rollout) for rollout in completed_rollouts}
        if not any(turns.values()):
            raise TrainingError(
                f"step {global_steps}: no model call has token ids{first_problems(rebuilt.skipped)}"
            )
        batch, metrics = super().get_train_data_batch(completed_rollouts, global_steps=global_steps)
        placement = self._place(batch, rebuilt, turns, credit)
        _write(batch, placement)
        self._report(rebuilt, credit, placement.skipped, global_steps)
        figures = self._figures(rebuilt, credit, placement)
        return batch, {**metrics, **figures, f"{PREFIX}credit_seconds": seconds}

    def _assign(self, rebuilt: Rebuilt, step: int) -> Credit:
        try:
            return assign_credit(rebuilt.trajectories, self.settings.credit)
        except CreditError as error:
            raise TrainingError(f"step {step}: {error}{first_problems(rebuilt.skipped)}") from error

    def _place(self, batch: Any, rebuilt: Rebuilt, turns: dict[str, list[Turn]], credit: Credit) -> Placement:
        return place_advantages(
            _arrays(batch, self.max_response_length),
            rebuilt.trajectories,
            turns,
            (credit.advantages(index) for index in range(len(rebuilt.trajectories))),
            level=self.trace_aggregator_level,
            limits=RowLimits(self.max_prompt_length, self.max_response_length, self.max_total_length),
        )

    def _report(self, rebuilt: Rebuilt, credit: Credit, skipped: Sequence[Skipped], step: int) -> None:
        everything = [*rebuilt.skipped, *credit.skipped, *skipped]
        for reason, count in reason_counts(everything).most_common():
            logger.info("step %d: %d × %s", step, count, reason)
        warn_of_singletons(credit, step)
        incomplete = self._incomplete_groups(rebuilt)
        if incomplete:
            logger.warning(
                "step %d: %d groups have fewer than the %d rollouts that were started for each task",
                step,
                incomplete,
                self.rollouts_per_task,
            )
        if self.settings.dump_dir is not None:
            dump_step(self.settings.dump_dir, step, rebuilt.trajectories, credit, everything)

    def _figures(self, rebuilt: Rebuilt, credit: Credit, placement: Placement) -> dict[str, float]:
        trained = placement.score_RT[placement.trained_RT]
        return {
            **credit_figures(credit),
            **step_figures(placement.skipped),
            **flag_figures(rebuilt.trajectories),
            **outcome_figures(rebuilt.trajectories),
            f"{PREFIX}rows": float(np.count_nonzero(placement.trained_RT.any(axis=1))),
            f"{PREFIX}advantage_rms": float(np.sqrt(np.mean(trained**2))) if len(trained) else 0.0,
            f"{PREFIX}groups_incomplete": float(self._incomplete_groups(rebuilt)),
        }

    def _incomplete_groups(self, rebuilt: Rebuilt) -> int:
        """Groups that the trainer handed over before all their rollouts were done."""
        tasks = [trajectory.task_id for trajectory in rebuilt.trajectories]
        return sum(tasks.count(task) < self.rollouts_per_task for task in dict.fromkeys(tasks))


def _turns(rollout: Any) -> list[Turn]:
    return [
        Turn(triplet.prompt["token_ids"], triplet.response["token_ids"]) for triplet in rollout.triplets or ()
    ]


def _arrays(batch: Any, max_response_length: int) -> Batch:
    tensors = batch.batch
    mask = tensors["response_mask"] if "response_mask" in tensors else tensors["attention_mask"]
    return Batch(
        rollout_id_R=[str(name) for name in batch.non_tensor_batch["rollout_id_list"]],
        response_RT=tensors["responses"].cpu().numpy(),
        mask_RT=mask[:, -max_response_length:].bool().cpu().numpy(),
        dropped_R=tensors["is_drop_mask"].cpu().numpy(),
    )


def _write(batch: Any, placement: Placement) -> None:
    """The trainer itself makes the mask of rows that are one call each; those have credit or none."""
    tensors = batch.batch
    device = tensors["responses"].device
    trained = torch.from_numpy(placement.trained_RT).to(device)
    tensors["token_level_scores"] = torch.from_numpy(placement.score_RT).to(device)
    tensors["is_drop_mask"] = tensors["is_drop_mask"] | ~trained.any(dim=-1)
    if "response_mask" in tensors:
        tensors["response_mask"] = tensors["response_mask"] * trained
