"""The daemon of Agent Lightning's trainer: finished rollouts in, a batch with step credit out.

Every rollout is read once, when it is done; all group statistics are finished before the trainer
sees a row, so nothing that it drops later changes them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any

import torch
from agentlightning.types import Rollout, RolloutLegacy, Task
from agentlightning.verl.daemon import AgentModeDaemon
from verl import DataProto

from milegpo_plugin.agl.adapter import TrajectoryAdapter
from milegpo_plugin.agl.dump import dump_step
from milegpo_plugin.agl.figures import SHOWN_PROBLEMS, first_problems, reason_counts, warn_of_singletons
from milegpo_plugin.agl.settings import BackendSettings
from milegpo_plugin.agl.verl.metrics import batch_metrics, validation_metrics
from milegpo_plugin.agl.verl.packing import Limits, Packed, pack_rows
from milegpo_plugin.agl.verl.reader import Played, read_rollout
from milegpo_plugin.agl.verl.tensors import build_batch
from milegpo_plugin.agl.verl.triplets import triplets_of
from milegpo_plugin.agl.verl.write_back import otlp_exporter, write_credit
from milegpo_plugin.credit import Credit, assign_credit
from milegpo_plugin.errors import ConfigError, CreditError, TrainingError
from milegpo_plugin.rows import RowBatch, build_rows
from milegpo_plugin.types import Skipped

logger = logging.getLogger(__name__)

LOOP_START_SECONDS = 30.0


class MileGPODaemon(AgentModeDaemon):
    """Agent Lightning's daemon with trajectories instead of triplets, and step credit.

    Args:
        settings: see :class:`BackendSettings`.
        args, kwargs: as the stock daemon's.

    Raises:
        ConfigError: the model takes images.
    """

    def __init__(self, *args: Any, settings: BackendSettings, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self._use_mrope:
            raise ConfigError(
                "MileGPO trains text models only, got a vision-language model: choose a text model"
            )
        self.settings = settings
        self._reader = TrajectoryAdapter(settings.reconstruct)
        self._played: dict[str, Played] = {}
        self._exporter = otlp_exporter() if settings.write_back else None
        _wait_for_loop(self)

    async def _validate_data_v1(self, rollout: Rollout) -> RolloutLegacy:
        """Read a finished rollout; an unknown reward stays None."""
        sample = self._task_id_to_original_sample[rollout.rollout_id]
        played = await read_rollout(self.store, self._reader, rollout, task_id=sample["data_id"])
        self._played[rollout.rollout_id] = played
        return RolloutLegacy(
            rollout_id=rollout.rollout_id,
            task=Task(
                rollout_id=rollout.rollout_id,
                input=rollout.input,
                mode=rollout.mode,
                resources_id=rollout.resources_id,
                metadata=rollout.metadata or {},
            ),
            final_reward=played.trajectory.reward,
            triplets=triplets_of(played.trajectory),
            metadata=rollout.metadata or {},
        )

    def get_train_data_batch(
        self, max_prompt_length: int, max_response_length: int, device: torch.device, global_steps: int
    ) -> tuple[DataProto, dict[str, float]]:
        """The rows of one update, with the credit of every step, and the figures of the batch.

        Raises:
            TrainingError: there are fewer rows than one mini-batch; the text says why.
        """
        played = self._in_queue_order()
        start = time.perf_counter()
        credit = self._assign(played, global_steps)
        seconds = time.perf_counter() - start
        limits = Limits(max_prompt_length, max_response_length)
        rows, packed = self._pack(played, credit, limits)
        skipped = [problem for item in played for problem in item.problems]
        skipped += [*credit.skipped, *rows.skipped, *packed.skipped]
        self._publish(played, credit, skipped, global_steps)
        _require_rows(len(packed.rows), self.mini_batch_size, skipped, global_steps)
        batch = build_batch(
            packed.rows,
            limits,
            data_ids=[item.trajectory.task_id for item in played],
            rollout_ids=[item.trajectory.rollout_id for item in played],
            pad_token_id=self.pad_token_id,
            device=device,
        )
        return batch, batch_metrics(played, credit, rows, packed, credit_seconds=seconds)

    def get_test_metrics(self) -> dict[str, float]:
        """The stock figures, and those of the rollouts whose outcome is known."""
        known = validation_metrics(
            [item.trajectory for item in self._in_queue_order()], self.settings.credit.success_threshold
        )
        return {**super().get_test_metrics(), **known}

    def clear_data_and_server(self) -> None:
        """Forget the rollouts of the last batch."""
        super().clear_data_and_server()
        self._played.clear()

    def _in_queue_order(self) -> list[Played]:
        return [self._played[rollout_id] for rollout_id in self._task_id_to_original_sample]

    def _assign(self, played: Sequence[Played], step: int) -> Credit:
        try:
            return assign_credit([item.trajectory for item in played], self.settings.credit)
        except CreditError as error:
            problems = [problem for item in played for problem in item.problems]
            raise TrainingError(f"step {step}: {error}{first_problems(problems)}") from error

    def _pack(self, played: Sequence[Played], credit: Credit, limits: Limits) -> tuple[RowBatch, Packed]:
        trajectories = [item.trajectory for item in played]
        level = self.trace_aggregator.get("level", "transition")
        rows = build_rows(trajectories, credit)
        packed = pack_rows(rows.rows, [t.rollout_id for t in trajectories], level, limits)
        return rows, packed

    def _publish(
        self, played: Sequence[Played], credit: Credit, skipped: Sequence[Skipped], step: int
    ) -> None:
        """Tell the log, the dump and the store, as far as they are asked for."""
        for reason, count in reason_counts(skipped).most_common():
            logger.info("step %d: %d × %s", step, count, reason)
        warn_of_singletons(credit, step)
        if self.settings.dump_dir is not None:
            dump_step(self.settings.dump_dir, step, [item.trajectory for item in played], credit, skipped)
        if self.settings.write_back:
            self._run(write_credit(self.store, played, credit, self._exporter))

    def _run(self, coroutine: Any) -> Any:
        """Run a coroutine on the daemon's own loop, where the store's client lives."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._internal_loop).result()


def _wait_for_loop(daemon: AgentModeDaemon) -> None:
    """The stock daemon starts its loop in a thread and does not wait for it."""
    deadline = time.monotonic() + LOOP_START_SECONDS
    while daemon._internal_loop is None:
        if time.monotonic() > deadline:
            raise TrainingError(f"the daemon's event loop did not start within {LOOP_START_SECONDS:.0f} s")
        time.sleep(0.01)


def _require_rows(rows: int, needed: int, skipped: Sequence[Skipped], step: int) -> None:
    """The platform rounds rows down to whole mini-batches; none would be an empty update."""
    if rows >= needed:
        return
    reasons = reason_counts(skipped).most_common(SHOWN_PROBLEMS)
    listed = "; ".join(f"{count} × {reason}" for reason, count in reasons)
    raise TrainingError(
        f"step {step}: {rows} rows, fewer than one mini-batch of {needed} "
        f"(actor_rollout_ref.actor.ppo_mini_batch_size). Left out: {listed or 'nothing'}"
    )
