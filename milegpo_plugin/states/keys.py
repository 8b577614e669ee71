"""One canonical key per step: credit exists only where rollouts meet in the same state.

A key is readable text. A given ``state`` is kept verbatim; a missing one is computed from
what is new since the policy's last answer: tool results and user messages. Roles, call ids,
response ids and message fields other than the content never enter a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from milegpo_plugin.config import StateConfig
from milegpo_plugin.types import Message, Step, Trajectory

EMPTY_STATE: Final = "<empty observation>"
"""Key of an observation without any text."""


@dataclass(frozen=True, slots=True)
class StateKeys:
    """Keys in the order of the trajectories: one per step, and one for the end.

    ``final`` is None where the end of the rollout was not recorded.
    """

    steps: list[list[str]]
    final: list[str | None]


def state_keys(trajectories: Sequence[Trajectory], config: StateConfig) -> StateKeys:
    """The state of every step and of every end."""
    del config
    steps = [[_step_key(step) for step in trajectory.steps] for trajectory in trajectories]
    return StateKeys(steps, [_final_key(trajectory) for trajectory in trajectories])


def _step_key(step: Step) -> str:
    return step.state if step.state is not None else _canonical(_text(step.observation))


def _final_key(trajectory: Trajectory) -> str | None:
    if trajectory.final_state is not None or trajectory.final_observation is None:
        return trajectory.final_state
    return _canonical(trajectory.final_observation)


def _text(messages: Sequence[Message]) -> str:
    return "\n".join(str(message.get("content") or "") for message in messages)


def _canonical(text: str) -> str:
    return " ".join(text.split()) or EMPTY_STATE
