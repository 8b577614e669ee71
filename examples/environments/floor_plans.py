"""Rooms of AI2-THOR as the ``alfworld`` package ships them: what stands in a room, and what can lie where."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import alfworld.gen.constants as thor
from games import GameError

FOLDER: Final = Path(thor.__file__).parent / "layouts"
MOST_OF_A_KIND: Final = 4
"""Receptacles of one class that are kept; some kitchens have 28 cabinets."""

BASINS: Final = {"Sink": "SinkBasin", "Bathtub": "BathtubBasin"}
FURNITURE: Final = (set(thor.RECEPTACLES) - set(thor.MOVABLE_RECEPTACLES_SET)) | set(BASINS.values())
UNDER_A_LAMP: Final = ("Desk", "SideTable", "Dresser", "DiningTable", "CoffeeTable")
LAMPS: Final = ("DeskLamp", "FloorLamp")
GRID: Final = 0.25
"""Metres between the points where an agent can stand."""


@dataclass(frozen=True, slots=True)
class Receptacle:
    """A piece of furniture: its id, its class, and the place from which it is reached."""

    name: str
    kind: str
    place: str


@dataclass(frozen=True, slots=True)
class Room:
    """A floor plan: its furniture, and the classes of objects that may lie in it."""

    scene: int
    receptacles: tuple[Receptacle, ...]
    objects: tuple[str, ...]

    @property
    def kinds(self) -> list[str]:
        """The classes of furniture, sorted."""
        return sorted({receptacle.kind for receptacle in self.receptacles})

    def places_for(self, kind: str) -> list[Receptacle]:
        """Where an object of a class can lie."""
        return [receptacle for receptacle in self.receptacles if holds(receptacle.kind, kind)]


def holds(furniture: str, kind: str) -> bool:
    """Whether such furniture can hold such an object."""
    if kind == "DeskLamp":
        return furniture in UNDER_A_LAMP
    return kind in thor.VAL_RECEPTACLE_OBJECTS.get(furniture, ())


def scenes_for(task_type: str) -> list[int]:
    """Floor plans in which a type of task makes sense."""
    rooms = thor.GOALS_VALID[task_type]
    return sorted(scene for room, scenes in thor.SCENE_TYPE.items() if room in rooms for scene in scenes)


def load_room(scene: int, dice: random.Random) -> Room:
    """The room of a floor plan, with a few pieces of each class of furniture.

    Raises:
        GameError: the package has no such floor plan.
    """
    points, listed = (FOLDER / f"FloorPlan{scene}-{part}.json" for part in ("openable", "objects"))
    if not points.exists():
        raise GameError(f"alfworld ships no floor plan {scene}")
    by_kind: defaultdict[str, list[Receptacle]] = defaultdict(list)
    for receptacle in _furniture(json.loads(points.read_text(encoding="utf-8"))):
        by_kind[receptacle.kind].append(receptacle)
    kept = tuple(
        receptacle
        for kind in sorted(by_kind)
        for receptacle in dice.sample(by_kind[kind], min(MOST_OF_A_KIND, len(by_kind[kind])))
    )
    furniture = {receptacle.kind for receptacle in kept}
    objects = [
        kind
        for kind in sorted(json.loads(listed.read_text(encoding="utf-8")))
        if kind in thor.OBJECTS_SET and "Sliced" not in kind and any(holds(f, kind) for f in furniture)
    ]
    return Room(scene, kept, tuple(objects))


def _furniture(points: dict[str, list[float]]) -> Iterator[Receptacle]:
    """The fixed receptacles of a floor plan: name → x, z, rotation and horizon of a place before it."""
    for name, (x, z, rotation, horizon) in sorted(points.items()):
        kind = name.split("|")[0]
        if kind in BASINS:
            kind = BASINS[kind]
            name = f"{name}|{kind}"
        if kind in FURNITURE:
            place = f"loc|{round(x / GRID)}|{round(z / GRID)}|{int(rotation) // 90 % 4}|{int(horizon)}"
            yield Receptacle(name, kind, place)
