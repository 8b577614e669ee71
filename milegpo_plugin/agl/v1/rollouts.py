"""Finished rollouts of Agent Lightning 1.0 → one trajectory each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from milegpo_plugin import semconv
from milegpo_plugin.spans import LogRecord, attach_logs
from milegpo_plugin.spans.agl_events import spans_of_agl_event
from milegpo_plugin.trajectories import ReconstructOptions, build_trajectories
from milegpo_plugin.types import Skipped, Span, Trajectory

FAILED: Final = "failed"


class Completed(Protocol):
    """What is read of ``agentlightning.verl.agl_rollout_manager.CompletedRollout``."""

    rollout_id: str
    data_id: str
    events: list[dict[str, Any]]
    rollout_state: Any
    error_message: str | None


@dataclass(slots=True)
class Rebuilt:
    """A trajectory for each rollout, in the order of the rollouts, and what cannot be used and why."""

    trajectories: list[Trajectory] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def rebuild_rollouts(rollouts: Sequence[Completed], options: ReconstructOptions) -> Rebuilt:
    """Rebuild each rollout from its own events; one without a model call has no steps.

    The task of a rollout is its data id, which Agent Lightning draws anew for every sample of a
    batch: rollouts of one sample in one batch are a group.
    """
    rebuilt = Rebuilt()
    for rollout in rollouts:
        spans = _spans(rollout, rebuilt.skipped)
        found = build_trajectories(spans, replace(options, tasks={rollout.rollout_id: rollout.data_id}))
        rebuilt.skipped += [item for item in found.skipped if item.kind != "rollout"]
        trajectory = next((t for t in found.trajectories if t.rollout_id == rollout.rollout_id), None)
        rebuilt.trajectories.append(_settle(rollout, trajectory))
        rebuilt.skipped += [
            Skipped("rollout", rollout.rollout_id, why) for why in _problems(rollout, trajectory)
        ]
    return rebuilt


def _spans(rollout: Completed, skipped: list[Skipped]) -> list[Span]:
    """The spans of all events; an event that cannot be read is skipped alone."""
    spans: list[Span] = []
    records: list[LogRecord] = []
    for number, event in enumerate(rollout.events):
        try:
            items = list(spans_of_agl_event(event))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"a damaged {event.get('event_type')} event: {type(error).__name__}: {error}"
            skipped.append(Skipped("event", f"{rollout.rollout_id}#{number}", reason))
            continue
        spans += [item for item in items if isinstance(item, Span)]
        records += [item for item in items if isinstance(item, LogRecord)]
    return attach_logs(spans, records, on_problem=skipped.append)


def _settle(rollout: Completed, found: Trajectory | None) -> Trajectory:
    """The task is the platform's, and so is the word on failure."""
    if found is None:
        found = Trajectory(task_id=rollout.data_id, rollout_id=rollout.rollout_id, flags=["no_model_call"])
    if rollout.rollout_state == FAILED:
        found.flags = sorted({*found.flags, "failed"})
    return found


def _problems(rollout: Completed, found: Trajectory | None) -> list[str]:
    reasons = []
    if rollout.rollout_state == FAILED:
        raised = next((event for event in rollout.events if _is_exception(event)), None)
        reasons.append(
            _raised(raised["data"]) if raised else f"failed: {rollout.error_message or 'no reason given'}"
        )
    if found is None:
        reasons.append("no LLM call was traced")
    return reasons


def _is_exception(event: Mapping[str, Any]) -> bool:
    return event.get("event_type") == semconv.AGL_EXCEPTION_EVENT and isinstance(event.get("data"), dict)


def _raised(data: Mapping[str, Any]) -> str:
    return f"the agent raised {data.get('type')}: {data.get('message')}"
