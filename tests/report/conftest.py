"""Rollouts of a house game, as an agent's traces would give them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit
from milegpo_plugin.files import trajectory_records, write_records
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
        write_records(path, trajectory_records(trajectories))
        return path

    return write


@pytest.fixture(scope="session")
def make_run(play_houses: Callable[..., list[Trajectory]]) -> Callable[..., Path]:
    """A training run's folder, as both backends write it, after ``done`` of ``planned`` iterations."""

    def build(path: Path, *, done: int = 5, planned: int = 5, keep: bool = True) -> Path:
        (path / "trajectories").mkdir(parents=True)
        settings = {
            "train": {"iterations": planned},
            "credit": CreditConfig.preset("webshop").model_dump(mode="json"),
        }
        (path / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        (path / "metrics.jsonl").write_bytes(b"")
        for iteration in range(done + 1):
            add_iteration(path, iteration, play_houses(3, 8, 12 + 8 * iteration), planned=planned, keep=keep)
        return path

    return build


def add_iteration(path: Path, iteration: int, batch: list[Trajectory], *, planned: int, keep: bool) -> None:
    rewards = [trajectory.reward or 0.0 for trajectory in batch]
    metrics: dict[str, Any] = {"iteration": iteration, "seconds/total": 12.0 * iteration}
    if iteration:
        credit = assign_credit(batch, CreditConfig.preset("webshop")).metrics()
        metrics |= {
            "success": sum(rewards) / len(rewards),
            "return": sum(rewards) / len(rewards),
            "steps": 14.0,
        }
        metrics |= {f"credit/{name}": value for name, value in credit.items()}
        metrics |= {
            "seconds/collect": 8.0,
            "seconds/agent": 5.0,
            "seconds/credit": 0.1,
            "seconds/update": 3.0,
        }
        metrics |= {"skipped": {"no token ids": 2}}
        if keep:
            write_records(path / "trajectories" / f"{iteration:04d}.jsonl.gz", trajectory_records(batch))
    if iteration % 2 == 0 or iteration == planned:
        rate = 0.25 + 0.06 * iteration
        metrics |= {"validation/success": rate, "validation/return": rate, "validation/steps": 13.0}
    with (path / "metrics.jsonl").open("ab") as stream:
        stream.write(orjson.dumps(metrics, option=orjson.OPT_APPEND_NEWLINE))


MARKUP = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1></script>{{ 7*7 }}<!--"
HOSTILE = {
    "markup": MARKUP,
    "direction": "abc \u202egnp.exe\u202c שלום עולם مرحبا",
    "controls": "bell \x07 escape \x1b[31mred null \x00 end",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 ✨ é",
    "dollars": "$\\frac{1}{0}$ $x^2",
    "formula": '=HYPERLINK("http://example.invalid","click")',
}


@pytest.fixture(scope="session")
def hostile_batch() -> Callable[[], list[Trajectory]]:
    """Four rollouts with hostile text in every field, and one observation of a million characters."""

    def build() -> list[Trajectory]:
        texts = [*HOSTILE.values(), MARKUP * 13_000]
        batch = []
        for number in range(4):
            steps = [
                Step(
                    state=text,
                    observation=[{"role": MARKUP, "content": text}],
                    agent=MARKUP,
                    action=Action(
                        text=text, tool_calls=[ToolCall(name=text[:200], arguments={text[:90]: text})]
                    ),
                )
                for text in texts[number % 2 :]
            ]
            batch.append(
                Trajectory(
                    task_id=MARKUP,
                    rollout_id=f"{MARKUP}{number}",
                    reward=float(number > 1),
                    final_state=MARKUP,
                    flags=[MARKUP],
                    steps=steps,
                )
            )
        return batch

    return build


@pytest.fixture(scope="session")
def fork() -> Callable[[], list[Trajectory]]:
    """One task, four rollouts: at the fork two go left to the goal, two go right into a pit.

    start → fork; left: fork → bridge → GOAL; right: fork → pit → pit.
    """

    def rollout(number: int, states: list[str], actions: list[str], reward: float) -> Trajectory:
        steps = [
            Step(state=state, observation=[{"role": "user", "content": state}], action=Action(text=action))
            for state, action in zip(states, actions, strict=True)
        ]
        end = None if reward else states[-1]
        return Trajectory(
            task_id="fork", rollout_id=f"r{number}", reward=reward, final_state=end, steps=steps
        )

    def build() -> list[Trajectory]:
        left = (["start", "fork", "bridge"], ["walk", "left", "cross"])
        right = (["start", "fork", "pit"], ["walk", "right", "climb"])
        return [
            rollout(0, *left, 1.0),
            rollout(1, *left, 1.0),
            rollout(2, *right, 0.0),
            rollout(3, *right, 0.0),
        ]

    return build
