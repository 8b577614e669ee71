"""One finished rollout of the store → its trajectory, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agentlightning.store.base import LightningStore
from agentlightning.types import Attempt, Rollout, Span

from milegpo_plugin.agl.adapter import TrajectoryAdapter
from milegpo_plugin.agl.rollouts import rebuild_rollout
from milegpo_plugin.types import Skipped, Trajectory


@dataclass(frozen=True, slots=True)
class Played:
    """A finished rollout: what happened, and what cannot be used and why.

    ``traces`` has the trace id of every span, so that credit can be linked to the model calls.
    """

    trajectory: Trajectory
    problems: list[Skipped] = field(default_factory=list)
    traces: dict[str, str] = field(default_factory=dict)


async def read_rollout(
    store: LightningStore, adapter: TrajectoryAdapter, rollout: Rollout, *, task_id: str
) -> Played:
    """The attempt of ``rollout`` that counts: its last succeeded one, else its last one.

    Spans of other attempts are not read; each of them is in ``problems``.
    """
    attempts = await store.query_attempts(rollout.rollout_id)
    counted = choose_attempt(attempts)
    spans: Sequence[Span] = []
    if counted is not None:
        spans = await store.query_spans(rollout.rollout_id, attempt_id=counted.attempt_id)
    trajectory, problems = rebuild_rollout(
        adapter,
        rollout.rollout_id,
        task_id=task_id,
        status=rollout.status if counted is None else counted.status,
        spans=spans,
    )
    if counted is not None:
        trajectory.attempt_id = counted.attempt_id
        problems += [_stale(attempt, counted) for attempt in attempts if attempt is not counted]
    return Played(trajectory, problems, {span.span_id: span.trace_id for span in spans})


def choose_attempt(attempts: Sequence[Attempt]) -> Attempt | None:
    """The last succeeded attempt, else the last one; None when there is none."""
    return max(attempts, key=lambda a: (a.status == "succeeded", a.sequence_id), default=None)


def _stale(attempt: Attempt, counted: Attempt) -> Skipped:
    name = f"{attempt.rollout_id}/{attempt.attempt_id}"
    return Skipped("attempt", name, f"{attempt.status}; attempt {counted.attempt_id} counts")
