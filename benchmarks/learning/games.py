"""TextWorld-Express instances as state graphs with text, so that thousands of steps cost no game engine.

The graphs are those under ``benchmarks/data``; the texts come from replaying the real game along the
shortest way to each state, and are kept under ``build/``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.ground_truth.textworld import DATA, GAMES, Explorer, open_game

KEPT: Final = Path(__file__).parents[2] / "build" / "learning"


@dataclass(frozen=True, slots=True)
class Instance:
    """One game: what the player sees in each state, and where each command leads.

    State 0 is the start, the last one the goal; other states without moves are failures.
    """

    seed: int
    text_N: list[str]
    moves_N: list[dict[str, int]]

    @property
    def goal(self) -> int:
        """The state of success."""
        return len(self.text_N) - 1


def load(name: str, count: int) -> list[Instance]:
    """The first ``count`` instances of a game, in the order of their seeds."""
    file = KEPT / f"{name}-{count}.json"
    if not file.exists():
        stored = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["instances"][:count]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps([asdict(item) for item in _read_texts(name, stored)]), encoding="utf-8")
    return [Instance(**item) for item in json.loads(file.read_text(encoding="utf-8"))]


def _read_texts(name: str, stored: list[dict[str, object]]) -> list[Instance]:
    game = next(game for game in GAMES if game.name == name)
    environment = open_game(game)
    try:
        explorer = Explorer(environment, game)
        return [_instance(explorer, item) for item in stored]
    finally:
        environment.close()


def _instance(explorer: Explorer, stored: dict) -> Instance:  # type: ignore[type-arg]
    actions, seed = stored["actions"], stored["seed"]
    moves_N = [{actions[number]: target for number, target in pairs} for pairs in stored["moves"]]
    text_N = []
    for state, path in enumerate(_shortest_paths(moves_N)):
        if moves_N[state]:
            text_N.append(describe(explorer.replay(seed, path), list(moves_N[state])))
        else:
            text_N.append("The game is won." if state == len(moves_N) - 1 else "The game is lost.")
    return Instance(seed, text_N, moves_N)


def _shortest_paths(moves_N: list[dict[str, int]]) -> list[list[str]]:
    """Commands from the start to each state, breadth first."""
    paths: dict[int, list[str]] = {0: []}
    queue = [0]
    for state in queue:
        for command, target in moves_N[state].items():
            if target not in paths:
                paths[target] = [*paths[state], command]
                queue.append(target)
    return [paths[state] for state in range(len(moves_N))]


def describe(infos: dict[str, str], commands: list[str]) -> str:
    """What a player is shown: where it is, what it carries, what it can do."""
    place = infos["look"].strip().split(". ")[0]
    carried = " ".join(infos["inventory"].split())
    return f"{place}. {carried} You can: {', '.join(sorted(commands))}."
