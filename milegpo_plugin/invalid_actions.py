"""Which actions were invalid: by what the trace shows, never by what it lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.states import compile_action_pattern
from milegpo_plugin.states.patterns import compile_pattern, pick_state
from milegpo_plugin.states.texts import observation_text
from milegpo_plugin.types import Step, Trajectory

_LOST_TEXT: Final = frozenset({"missing_completion", "no_content", "redacted_content", "truncated_json"})
"""Flags of steps whose text may not be what the policy wrote."""


def invalid_actions(trajectories: Iterable[Trajectory], config: CreditConfig) -> NDArray[np.bool_]:
    """Whether each step's action was invalid, rollout after rollout. Shape (S,).

    An action is invalid when the arguments of a tool call are no JSON object, when it has no tool call
    and ``states.action_pattern`` finds nothing in its text, or when ``invalid_action_pattern`` matches
    the observation that follows. What was not recorded makes no action invalid.
    """
    judge = _Judge(config)
    return np.array([mark for item in trajectories for mark in judge.marks(item)], dtype=np.bool_)


class _Judge:
    """The rules of one configuration; each distinct observation is searched once."""

    def __init__(self, config: CreditConfig) -> None:
        states, refusal = config.states, config.invalid_action_pattern
        self._tools_only = states.tool_results_only
        self._state = compile_pattern(states.pattern) if states.pattern else None
        self._action = compile_action_pattern(states.action_pattern) if states.action_pattern else None
        self._refusal = re.compile(refusal, re.DOTALL) if refusal else None
        self._refused: dict[str, bool] = {}

    def marks(self, trajectory: Trajectory) -> list[bool]:
        """One mark per step."""
        marks = [self._is_malformed(step) for step in trajectory.steps]
        if self._refusal is None:
            return marks
        return [
            mark or (reply is not None and self._is_refusal(reply, self._refusal))
            for mark, reply in zip(marks, self._replies(trajectory), strict=True)
        ]

    def _is_malformed(self, step: Step) -> bool:
        if "invalid_arguments" in step.flags:
            return True
        text = step.action.text
        if self._action is None or step.action.tool_calls or text is None:
            return False
        return self._action.search(text) is None and _LOST_TEXT.isdisjoint(step.flags)

    def _replies(self, trajectory: Trajectory) -> list[str | None]:
        """What the agent of each step saw next, in the order of the steps; None where nothing tells."""
        end = trajectory.final_observation
        replies = [trajectory.final_state if end is None else end]
        seen: dict[str | None, str | None] = {}
        for index in range(len(trajectory.steps) - 1, 0, -1):
            later = trajectory.steps[index]
            seen[later.agent] = self._observed(later)
            replies.append(seen.get(trajectory.steps[index - 1].agent))
        return replies[::-1]

    def _observed(self, step: Step) -> str | None:
        if not step.observation:
            return step.state
        return observation_text(step.observation, self._tools_only, sort_json=False)

    def _is_refusal(self, text: str, refusal: re.Pattern[str]) -> bool:
        if text not in self._refused:
            current = pick_state(text, self._state) if self._state is not None else None
            self._refused[text] = refusal.search(text if current is None else current) is not None
        return self._refused[text]
