"""Queue rollouts in the platform's store, wait for them, and read each one's spans once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentlightning.semconv import AGL_EXCEPTION
from agentlightning.store.base import LightningStore
from agentlightning.types import EnqueueRolloutRequest, Rollout, RolloutConfig, RolloutMode, Span

from milegpo_plugin.agl.adapter import TrajectoryAdapter
from milegpo_plugin.types import Skipped, Trajectory

FINISHED: Final = ("succeeded", "failed", "cancelled")
POLL_SECONDS: Final = 0.2
TASK_FLAGS: Final = frozenset({"task_from_message", "no_task"})
"""Doubts about the task that the platform's own task id settles."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task of the user: an id that groups its rollouts, and the input for the agent."""

    task_id: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Collected:
    """What a batch of rollouts gave: trajectories in queue order, and what is missing.

    ``seconds`` is wall time; ``agent_seconds`` adds up the rollouts' own times, model included.
    """

    trajectories: list[Trajectory]
    skipped: list[Skipped]
    seconds: float
    agent_seconds: float


class RolloutClient:
    """The store as the algorithm uses it.

    Args:
        store: the platform's store.
        adapter: turns one rollout's spans into a trajectory.
        timeout: seconds after which an unfinished rollout is given up.
        alive: called at every poll; raises when waiting makes no sense any more.
    """

    def __init__(
        self,
        store: LightningStore,
        adapter: TrajectoryAdapter,
        *,
        timeout: float,
        alive: Callable[[], object],
    ) -> None:
        self._store = store
        self._adapter = adapter
        self._timeout = timeout
        self._alive = alive

    async def collect(
        self,
        tasks: Sequence[Task],
        *,
        repeats: int,
        mode: RolloutMode,
        resources_id: str,
        on_progress: Callable[[int], object],
    ) -> Collected:
        """Run every task ``repeats`` times and rebuild what happened.

        ``on_progress`` is called with the number of finished rollouts.
        """
        start = time.monotonic()
        queued = await self._enqueue(tasks, repeats, mode, resources_id)
        finished = await self._wait(list(queued), on_progress)
        trajectories: list[Trajectory] = []
        skipped: list[Skipped] = []
        agent_seconds = 0.0
        for rollout_id, task in queued.items():
            spans = await self._store.query_spans(rollout_id)
            rollout = finished.get(rollout_id)
            trajectory, problems = rebuild_rollout(
                self._adapter,
                rollout_id,
                task_id=task.task_id,
                status="unfinished" if rollout is None else rollout.status,
                spans=spans,
            )
            trajectories.append(trajectory)
            skipped.extend(problems)
            agent_seconds += _duration(spans)
        return Collected(trajectories, skipped, time.monotonic() - start, agent_seconds)

    async def _enqueue(
        self, tasks: Sequence[Task], repeats: int, mode: RolloutMode, resources_id: str
    ) -> dict[str, Task]:
        drawn = [task for task in tasks for _ in range(repeats)]
        requests = [
            EnqueueRolloutRequest(
                input=task.input,
                mode=mode,
                resources_id=resources_id,
                config=RolloutConfig(timeout_seconds=self._timeout, max_attempts=1),
                metadata={"data_id": task.task_id},
            )
            for task in drawn
        ]
        rollouts = await self._store.enqueue_many_rollouts(requests)
        return {rollout.rollout_id: task for rollout, task in zip(rollouts, drawn, strict=True)}

    async def _wait(self, ids: list[str], on_progress: Callable[[int], object]) -> Mapping[str, Rollout]:
        deadline = time.monotonic() + self._timeout * max(1, len(ids))
        while True:
            self._alive()
            rollouts = await self._store.query_rollouts(status_in=list(FINISHED), rollout_id_in=ids)
            on_progress(len(rollouts))
            if len(rollouts) == len(ids) or time.monotonic() > deadline:
                return {rollout.rollout_id: rollout for rollout in rollouts}
            await asyncio.sleep(POLL_SECONDS)


def rebuild_rollout(
    adapter: TrajectoryAdapter, rollout_id: str, *, task_id: str, status: str, spans: Sequence[Span]
) -> tuple[Trajectory, list[Skipped]]:
    """The trajectory of one rollout of the platform, and why it is not a plain success.

    A rollout without a traced model call gives a trajectory without steps. ``task_id`` is the
    platform's; so is ``status``, where everything but ``succeeded`` makes it a failed rollout.
    """
    found = next((t for t in adapter.adapt(spans).trajectories if t.rollout_id == rollout_id), None)
    reasons = _reasons(status, spans)
    if found is None:
        found = Trajectory(task_id=task_id, rollout_id=rollout_id, flags=["no_model_call"])
        reasons += ["no model call was traced"] if spans else []
    flags = set(found.flags) - TASK_FLAGS | (set() if status == "succeeded" else {"failed"})
    problems = [Skipped("rollout", rollout_id, reason) for reason in reasons]
    return found.model_copy(update={"task_id": task_id, "flags": sorted(flags)}), problems


def _duration(spans: Sequence[Span]) -> float:
    """Seconds from the first start to the last end."""
    starts = [span.start_time for span in spans if span.start_time is not None]
    ends = [span.end_time for span in spans if span.end_time is not None]
    return max(ends) - min(starts) if starts and ends else 0.0


def _reasons(status: str, spans: Sequence[Span]) -> list[str]:
    """Why a rollout is not a plain success; the agent's own exception comes first."""
    if not spans:
        return [f"the platform reports it as {status} and holds no spans of it"]
    if status == "succeeded":
        return []
    raised = next((span.attributes for span in spans if span.name == AGL_EXCEPTION), None)
    if raised is None:
        return [f"the platform reports it as {status}"]
    return [f"the agent raised {raised.get('exception.type')}: {raised.get('exception.message')}"]
