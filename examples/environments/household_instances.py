"""Games in ALFWorld's format when its data cannot be downloaded: **own instances, not ALFWorld's**.

The ``alfworld`` package ships its PDDL domain, its grammar, its goals and AI2-THOR's floor plans, but no
games. This writes games from those parts; the engine plays them like the original ones, and its planner
solves each before it is kept. The unseen split lies in rooms that training never enters.

    python examples/environments/household_instances.py games/       # 6 task types × 20, in a few minutes

writes ``games/{train,unseen}/TYPE-OBJECT-FURNITURE-SCENE/trial_SEED/{game.tw-pddl,traj_data.json}``.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import alfworld.gen.constants as thor
from alfworld.agents.utils.misc import add_task_to_grammar
from alfworld.gen.goal_library import gdict as goals
from alfworld.info import ALFRED_PDDL_PATH, ALFRED_TWL2_PATH
from floor_plans import LAMPS, Receptacle, Room, load_room, scenes_for
from household import solve

TASK_TYPES: Final = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
NEEDS: Final = {
    "clean": ("Cleanable", "SinkBasin"),
    "heat": ("Heatable", "Microwave"),
    "cool": ("Coolable", "Fridge"),
}
"""By a word of the task type: what the object must be, and the furniture that does it."""

ABILITIES: Final = ("Cleanable", "Heatable", "Coolable")
OTHER_OBJECTS: Final = 18
EVERY_UNSEEN: Final = 4
"""Every fourth floor plan is held out."""

TRAIN_SHARE: Final = 0.75
START: Final = "loc|99|99|0|30"
LABEL: Final = "ALFWorld format, own instances"
ESCAPES: Final = {"|": "_bar_", "+": "_plus_", "-": "_minus_", "#": "-", ".": "_dot_", ",": "_comma_"}


@dataclass(frozen=True, slots=True)
class Placed:
    """An object and the furniture that it lies in."""

    name: str
    kind: str
    where: Receptacle


@dataclass(frozen=True, slots=True)
class Instance:
    """One task in one room: bring ``target`` to ``parent`` (for a look task: to a lamp)."""

    task_type: str
    room: Room
    target: str
    parent: str
    lamp: str
    objects: tuple[Placed, ...]
    seed: int


def draw_instance(task_type: str, scene: int, seed: int) -> Instance | None:
    """A task in a room, drawn by the seed; None when the room does not offer it."""
    dice = random.Random(f"{task_type} {scene} {seed}")
    room = load_room(scene, dice)
    lamp = "DeskLamp" if task_type == "look_at_obj_in_light" else ""
    candidates = [kind for kind in room.objects if kind not in LAMPS and _fits(kind, task_type, room)]
    if not candidates or (lamp and not room.places_for(lamp)):
        return None
    target = dice.choice(candidates)
    parent = dice.choice(sorted({place.kind for place in room.places_for(target)}))
    starts = [place for place in room.places_for(target) if place.kind != parent]
    if not starts:
        return None
    wanted = [(target, starts)] * (2 if "two" in task_type else 1)
    wanted += [(lamp, room.places_for(lamp))] if lamp else []
    others = [kind for kind in room.objects if kind != target]
    wanted += [(kind, room.places_for(kind)) for kind in dice.choices(others, k=OTHER_OBJECTS)]
    objects = tuple(_place(kind, places, dice) for kind, places in wanted)
    return Instance(task_type, room, target, parent, lamp, objects, seed)


def _fits(kind: str, task_type: str, room: Room) -> bool:
    """Whether the task can be done with such an object in this room."""
    for word, (ability, furniture) in NEEDS.items():
        if f"_{word}_" in task_type:
            return kind in thor.VAL_ACTION_OBJECTS[ability] and furniture in room.kinds
    return True


def _place(kind: str, places: list[Receptacle], dice: random.Random) -> Placed:
    position = "|".join(f"{dice.uniform(-4, 4):+06.2f}" for _ in range(3))
    return Placed(f"{kind}|{position}", kind, dice.choice(places))


def write_problem(instance: Instance) -> str:
    """The PDDL problem of an instance."""
    title = f"(define (problem plan_{instance.room.scene}_{instance.seed})\n(:domain alfred)\n"
    objects = "(:objects\n" + "\n".join(_declarations(instance)) + ")\n"
    facts = "(:init\n" + "\n".join(f"({fact})" for fact in _facts(instance)) + ")\n"
    goal = goals[instance.task_type]["pddl"].format(
        obj=instance.target, recep=instance.parent, toggle=instance.lamp or "DeskLamp"
    )
    return _escape(title + objects + facts) + _escape(goal)


def _declarations(instance: Instance) -> Iterator[str]:
    """Every name with its type; ``#`` stands for the dash that names may not hold."""
    receptacles = instance.room.receptacles
    yield "agent1 # agent"
    yield from (f"{placed.name} # object" for placed in instance.objects)
    yield from (f"{kind}Type # otype" for kind in sorted({placed.kind for placed in instance.objects}))
    yield from (f"{kind}Type # rtype" for kind in instance.room.kinds)
    yield from (f"{receptacle.name} # receptacle" for receptacle in receptacles)
    yield from (f"{place} # location" for place in sorted({START, *(r.place for r in receptacles)}))


def _facts(instance: Instance) -> Iterator[str]:
    yield f"atLocation agent1 {START}"
    for receptacle in instance.room.receptacles:
        yield f"receptacleType {receptacle.name} {receptacle.kind}Type"
        yield f"receptacleAtLocation {receptacle.name} {receptacle.place}"
        if receptacle.kind in thor.OPENABLE_CLASS_SET:
            yield f"openable {receptacle.name}"
    for placed in instance.objects:
        yield from _object_facts(placed)
    for kind in sorted({placed.kind for placed in instance.objects}):
        yield from (
            f"canContain {furniture}Type {kind}Type"
            for furniture in sorted({place.kind for place in instance.room.places_for(kind)})
        )


def _object_facts(placed: Placed) -> Iterator[str]:
    yield f"objectType {placed.name} {placed.kind}Type"
    yield f"inReceptacle {placed.name} {placed.where.name}"
    yield f"objectAtLocation {placed.name} {placed.where.place}"
    yield f"{'toggleable' if placed.kind in LAMPS else 'pickupable'} {placed.name}"
    for ability in ABILITIES:
        if placed.kind in thor.VAL_ACTION_OBJECTS[ability]:
            yield f"{ability.lower()} {placed.name}"


def _escape(text: str) -> str:
    for character, word in ESCAPES.items():
        text = text.replace(character, word)
    return text


def describe(instance: Instance) -> dict[str, Any]:
    """The part of ALFRED's ``traj_data.json`` that ALFWorld reads."""
    params = {
        "object_target": instance.target,
        "parent_target": "" if instance.lamp else instance.parent,
        "toggle_target": instance.lamp,
        "mrecep_target": "",
        "object_sliced": False,
    }
    scene = {"scene_num": instance.room.scene, "floor_plan": f"FloorPlan{instance.room.scene}"}
    return {"task_type": instance.task_type, "pddl_params": params, "scene": scene, "origin": LABEL}


def write_game(instance: Instance, folder: Path) -> Path | None:
    """Write a game, solve it, and keep it with its solution; None when the planner finds none."""
    furniture = instance.lamp or instance.parent
    name = f"{instance.task_type}-{instance.target}-{furniture}-{instance.room.scene}"
    file = folder / name / f"trial_{instance.seed:05}" / "game.tw-pddl"
    file.parent.mkdir(parents=True, exist_ok=True)
    trajectory = describe(instance)
    random.seed(instance.seed)  # the engine's grammar draws its wording from the global generator
    game: dict[str, Any] = {
        "pddl_domain": Path(ALFRED_PDDL_PATH).read_text(encoding="utf-8"),
        "grammar": add_task_to_grammar(Path(ALFRED_TWL2_PATH).read_text(encoding="utf-8"), trajectory),
        "pddl_problem": write_problem(instance),
        "solvable": True,
    }
    file.write_text(json.dumps(game), encoding="utf-8")
    plan = solve(file)
    if not plan:
        file.unlink()
        file.parent.rmdir()
        return None
    file.write_text(json.dumps({**game, "walkthrough": plan}), encoding="utf-8")
    (file.parent / "traj_data.json").write_text(json.dumps(trajectory), encoding="utf-8")
    return file


def write_split(folder: Path, task_type: str, count: int, *, unseen: bool) -> list[Path]:
    """Write that many games of a type, in rooms of the split."""
    every = scenes_for(task_type)
    scenes = [scene for scene in every if (scene % EVERY_UNSEEN == 0) == unseen]
    written: list[Path] = []
    for seed in range(50 * count):
        if len(written) == count:
            break
        instance = draw_instance(task_type, scenes[seed % len(scenes)], seed)
        file = write_game(instance, folder) if instance is not None else None
        written += [file] if file is not None else []
    return written


def main() -> None:
    """Write both splits of every type."""
    parser = argparse.ArgumentParser(description=f"Write games: {LABEL}.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--per-type", type=int, default=20, help="a quarter of them in unseen rooms")
    options = parser.parse_args()
    train = round(options.per_type * TRAIN_SHARE)
    for task_type in TASK_TYPES:
        seen = write_split(options.folder / "train", task_type, train, unseen=False)
        unseen = write_split(options.folder / "unseen", task_type, options.per_type - train, unseen=True)
        print(f"{task_type}: {len(seen)} train, {len(unseen)} unseen ({LABEL})", flush=True)


if __name__ == "__main__":
    main()
