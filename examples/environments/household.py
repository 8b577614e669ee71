"""ALFWorld's text engine as a game. Needs ``alfworld==0.4.2``.

A task is ``{"game": path of a game.tw-pddl}``. Real games come from ``alfworld-download`` and lie under
``$ALFWORLD_DATA``; without them, ``household_instances.py`` writes own ones in the same format.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import textworld
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos
from games import Frame, GameError, Tool
from textworld.envs import PddlEnv

STEP_LIMIT: Final = 50
GOAL: Final = "Your task is to: "
TOOLS: Final = (
    Tool("look", "Look around.", "look"),
    Tool("inventory", "See what you carry.", "inventory"),
    Tool("go_to", "Walk to a piece of furniture.", "go to {place}"),
    Tool("open", "Open something.", "open {place}"),
    Tool("close", "Close something.", "close {place}"),
    Tool("examine", "Look closely at something.", "examine {item}"),
    Tool("take", "Take an object.", "take {item} from {place}"),
    Tool("move", "Put down the object you carry.", "move {item} to {place}"),
    Tool("use", "Switch a lamp on.", "use {item}"),
    Tool("clean", "Clean the object you carry.", "clean {item} with {place}"),
    Tool("heat", "Heat the object you carry.", "heat {item} with {place}"),
    Tool("cool", "Cool the object you carry.", "cool {item} with {place}"),
    Tool("slice", "Slice an object with a knife you carry.", "slice {item} with {knife}"),
)


def load_engine(file: Path, *, plan: bool = False) -> Any:
    """ALFWorld's engine with one game; with ``plan`` it also solves it at every step (slow)."""
    infos = textworld.EnvInfos(
        admissible_commands=True, won=True, facts=plan, policy_commands=plan, extras=["gamefile"]
    )
    engine = AlfredInfos(AlfredDemangler(PddlEnv(infos), shuffle=False))
    engine.load(str(file))
    return engine


def solve(file: Path) -> list[str]:
    """The planner's solution of a game; empty when there is none."""
    engine = load_engine(file, plan=True)
    return list(engine.reset()["policy_commands"] or ())


class HouseholdGame:
    """One game of ALFWorld at a time."""

    setting = "the ALFRED Embodied Environment"
    tools = TOOLS

    def __init__(self, name: str) -> None:
        self.name = name
        self.goal = ""
        self._engine: Any = None
        self._steps = 0

    def start(self, task: Mapping[str, Any]) -> Frame:
        """Load a game.

        Raises:
            GameError: the task names no game file.
        """
        file = Path(str(task.get("game", "")))
        if not file.is_file():
            raise GameError(
                f"{self.name}: the task needs the path of a game.tw-pddl, got {task.get('game')!r}"
            )
        self._engine = load_engine(file)
        self._steps = 0
        state = self._engine.reset()
        self.goal = state.feedback.partition(GOAL)[2].strip()
        return self._frame(state, done=False)

    def act(self, command: str) -> Frame:
        """Do what the command says."""
        state, _, done = self._engine.step(command)
        self._steps += 1
        return self._frame(state, done=bool(done))

    def _frame(self, state: Any, *, done: bool) -> Frame:
        won = bool(state["won"])
        return Frame(
            observation=state.feedback.partition(GOAL)[0].strip(),
            actions=tuple(command for command in state["admissible_commands"] if command != "help"),
            score=float(won),
            done=done or won or self._steps >= STEP_LIMIT,
            won=won,
        )
