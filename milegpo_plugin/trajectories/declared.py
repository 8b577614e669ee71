"""States and observations that an agent or its environment declared go before what prompts show.

An event belongs to the first model call that began after it: it tells what that call acted on.
Events after the last call tell how the rollout ended. Of several states the last one counts; a
milestone names the state in which it was reached unless a state event does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from milegpo_plugin import semconv
from milegpo_plugin.adapters import Declared, read_declared
from milegpo_plugin.adapters.messages import message_text
from milegpo_plugin.types import JSON, Message, Skipped, Span, Step, Trajectory

MILESTONE_STATE: Final = "milestone: "
"""Prefix of the key of a state that only a milestone names."""


def apply_declared(trajectory: Trajectory, starts_ns: Sequence[int], spans: Iterable[Span]) -> list[Skipped]:
    """Put what was declared on the steps of ``trajectory`` and on its end.

    Args:
        trajectory: changed in place. A step that follows a milestone gets a field ``milestones``
            with the names, the trajectory a field ``final_milestones``.
        starts_ns: when the model call of each step began, in order.
        spans: the spans of the rollout in order of time.
    """
    places: defaultdict[int, list[Declared]] = defaultdict(list)
    skipped = []
    for declared in filter(None, map(read_declared, spans)):
        if declared.text is None:
            reason = f"a {declared.kind} event without content"
            skipped.append(Skipped("event", declared.span.span_id, reason))
        else:
            places[bisect_left(starts_ns, declared.span.start_ns)].append(declared)
    for place, found in places.items():
        if place < len(trajectory.steps):
            _declare_step(trajectory.steps[place], found)
        else:
            _declare_end(trajectory, found)
    return skipped


def _declare_step(step: Step, found: Sequence[Declared]) -> None:
    step.observation = _messages(found) or step.observation
    step.state = _state(found) or step.state
    _keep_milestones(step.model_extra, "milestones", found)


def _declare_end(trajectory: Trajectory, found: Sequence[Declared]) -> None:
    shown = [text for message in _messages(found) if (text := message_text(message)) is not None]
    if shown:
        trajectory.final_observation = "\n".join(shown)
        trajectory.flags = [flag for flag in trajectory.flags if flag != "missing_final_observation"]
    trajectory.final_state = _state(found) or trajectory.final_state
    _keep_milestones(trajectory.model_extra, "final_milestones", found)


def _keep_milestones(fields: dict[str, JSON] | None, name: str, found: Sequence[Declared]) -> None:
    milestones = _texts(found, semconv.AGL_MILESTONE_EVENT)
    if milestones and fields is not None:
        fields[name] = milestones


def _messages(found: Iterable[Declared]) -> list[Message]:
    return [m for item in found if item.kind == semconv.AGL_OBSERVATION_EVENT for m in item.messages]


def _state(found: Sequence[Declared]) -> str | None:
    named = [MILESTONE_STATE + name for name in _texts(found, semconv.AGL_MILESTONE_EVENT)]
    states = _texts(found, semconv.AGL_STATE_EVENT) or named
    return states[-1] if states else None


def _texts(found: Iterable[Declared], kind: str) -> list[str]:
    return [item.text for item in found if item.kind == kind and item.text is not None]
