"""Rollouts of a house game, as an agent's traces would give them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest

from milegpo_plugin.types import Action, Step, ToolCall, Trajectory

ROOMS = ("hall", "kitchen", "library", "pantry", "study", "attic", "garden", "workshop", "bedroom")
THINGS = {
    "hall": "a coat stand and a worn red carpet",
    "kitchen": "a stove, a sink and a table laid for four",
    "library": "shelves up to the ceiling and a ladder on rails",
    "pantry": "sacks of flour, and a trapdoor in the floor",
    "study": "a desk covered with maps",
    "attic": "dust, a cracked mirror and a pigeon",
    "garden": "a dry fountain between hedges",
    "workshop": "a workbench, a vice and a box of nails",
    "bedroom": "an iron bed and a wardrobe",
}
OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}


@dataclass
class House:
    """Find the brass key, carry it to the chest, open it. The trapdoor has no way back."""

    seed: int
    doors: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        draw = random.Random(f"house {self.seed}")
        rooms = ["hall", *draw.sample(ROOMS[1:], len(ROOMS) - 1)]
        self.doors = {room: {} for room in rooms}
        for position, room in enumerate(rooms[1:], start=1):
            self._connect(draw, room, rooms[max(0, position - draw.randint(1, 3))])
        self._connect(draw, rooms[2], rooms[6])
        self.key_room, self.chest_room = draw.sample([r for r in rooms[3:] if r != "pantry"], 2)
        self.room, self.has_key, self.opened = "hall", False, False

    def _connect(self, draw: random.Random, room: str, other: str) -> None:
        free = [d for d in OPPOSITE if d not in self.doors[room] and OPPOSITE[d] not in self.doors[other]]
        if free and other not in self.doors[room].values():
            direction = draw.choice(free)
            self.doors[room][direction] = other
            self.doors[other][OPPOSITE[direction]] = room

    def look(self) -> str:
        if self.room in ("cellar", "crawlspace"):
            return f"You are in the {self.room}. It is dark and the trapdoor above is out of reach. Exits: on"
        seen = THINGS[self.room]
        if self.room == self.key_room and not self.has_key:
            seen += "; a brass key glints on the floor"
        if self.room == self.chest_room:
            seen += "; a locked oak chest stands in the corner"
        exits = ", ".join(sorted(self.doors[self.room]))
        carried = "a brass key" if self.has_key else "nothing"
        return f"You are in the {self.room}. You see {seen}. Exits: {exits}. You carry {carried}."

    def actions(self) -> list[tuple[str, str]]:
        if self.room in ("cellar", "crawlspace"):
            return [("go", "on"), ("shout", "help")]
        found = [("go", direction) for direction in sorted(self.doors[self.room])]
        if self.room == self.key_room and not self.has_key:
            found.append(("take", "brass key"))
        if self.room == self.chest_room:
            found.append(("open", "oak chest"))
        if self.room == "pantry":
            found.append(("open", "trapdoor"))
        return found

    def act(self, verb: str, what: str) -> None:
        if what == "trapdoor":
            self.room = "cellar"
        elif what == "on":
            self.room = "crawlspace" if self.room == "cellar" else "cellar"
        elif verb == "go":
            self.room = self.doors[self.room][what]
        elif verb == "take":
            self.has_key = True
        elif what == "oak chest":
            self.opened = self.has_key


def play(task: int, rollout: int, limit: int) -> Trajectory:
    """One rollout; later rollouts of a task are a little less distracted."""
    house, draw = House(task), random.Random(f"{task}/{rollout}")
    goal = "Find the brass key, carry it to the oak chest, and open the chest."
    steps: list[Step] = []
    news = f"{goal}\n\n{house.look()}"
    role = "user"
    while len(steps) < limit and not house.opened:
        options = house.actions()
        useful = [a for a in options if a[1] == "brass key" or (a[1] == "oak chest" and house.has_key)]
        verb, what = draw.choice(useful if useful and draw.random() < 0.5 + 0.05 * rollout else options)
        state = house.look()
        call = ToolCall(
            id=f"call_{len(steps)}", name=verb, arguments={"object" if verb != "go" else "to": what}
        )
        steps.append(
            Step(
                state=state,
                observation=[{"role": role, "content": news}],
                agent="explorer",
                action=Action(text="Let me think about where the key could be.", tool_calls=[call]),
            )
        )
        house.act(verb, what)
        news, role = house.look(), "tool"
    return Trajectory(
        task_id=f"house {task:02d}: bring the key to the chest",
        rollout_id=f"ro-{task:02d}-{rollout}",
        reward=float(house.opened),
        final_state=house.look(),
        final_observation=house.look(),
        steps=steps,
    )


@pytest.fixture(scope="session")
def play_houses() -> Callable[..., list[Trajectory]]:
    """``tasks`` × ``rollouts`` trajectories of at most ``limit`` steps."""

    def build(tasks: int = 3, rollouts: int = 8, limit: int = 30) -> list[Trajectory]:
        return [play(task, rollout, limit) for task in range(tasks) for rollout in range(rollouts)]

    return build


@pytest.fixture(scope="session")
def save() -> Callable[[Path, list[Trajectory]], Path]:
    """Write trajectories as ``trajectories.jsonl``."""

    def write(path: Path, trajectories: list[Trajectory]) -> Path:
        path.write_bytes(
            b"".join(
                orjson.dumps(t.model_dump(mode="json"), option=orjson.OPT_APPEND_NEWLINE)
                for t in trajectories
            )
        )
        return path

    return write
