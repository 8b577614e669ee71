"""Tasks of an environment as JSON lines: ``python examples/environments/tasks.py coin tasks/``.

Writes ``train.jsonl`` and ``unseen.jsonl``; no unseen task is ever trained on. ALFWorld's games come from
``--games FOLDER`` (see ``household_instances.py``), else from ``$ALFWORLD_DATA``.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from games import GameError

Task = dict[str, Any]
Splits = tuple[list[Task], list[Task]]
EASY_TASKS: Final = ("find-animal", "find-living-thing", "find-non-living-thing", "find-plant")
UNSEEN_SEEDS: Final = 10_000
UNSEEN_GOALS: Final = 500
"""WebShop's first 500 goals are for testing, as in its own agents."""

SPLITS: Final = {"train": ("train",), "unseen": ("unseen", "valid_unseen")}


def express_tasks(name: str, train: int, unseen: int, _: Path | None) -> Splits:
    """Houses of TextWorld-Express, by seed."""
    folds = range(1, train + 1), range(UNSEEN_SEEDS, UNSEEN_SEEDS + unseen)
    first, second = ([{"task_id": f"{name}-{seed}", "seed": seed} for seed in fold] for fold in folds)
    return first, second


def shop_tasks(_: str, train: int, unseen: int, __: Path | None) -> Splits:
    """Goals of WebShop, by number."""
    folds = range(UNSEEN_GOALS, UNSEEN_GOALS + train), range(min(unseen, UNSEEN_GOALS))
    first, second = ([{"task_id": f"goal-{goal}", "goal": goal} for goal in fold] for fold in folds)
    return first, second


def science_tasks(_: str, train: int, unseen: int, __: Path | None) -> Splits:
    """Variations of the easy tasks: the first half of each for training, the last quarter unseen."""
    from scienceworld import ScienceWorldEnv

    counts = {task: ScienceWorldEnv("").get_max_variations(task) for task in EASY_TASKS}
    first = ((task, n) for n in range(max(counts.values())) for task in EASY_TASKS if n < counts[task] // 2)
    second = (
        (task, counts[task] - 1 - n)
        for n in range(max(counts.values()))
        for task in EASY_TASKS
        if n < counts[task] // 4
    )
    return _science(first, train), _science(second, unseen)


def _science(pairs: Iterable[tuple[str, int]], count: int) -> list[Task]:
    drawn = list(pairs)[:count]
    return [{"task_id": f"{task}-{number}", "task": task, "variation": number} for task, number in drawn]


def household_tasks(_: str, train: int, unseen: int, games: Path | None) -> Splits:
    """Games of ALFWorld's format, in the order of their paths."""
    data = os.environ.get("ALFWORLD_DATA")
    if games is None and not data:
        raise GameError("alfworld: pass --games FOLDER, or set ALFWORLD_DATA")
    folder = games or Path(str(data)) / "json_2.1.1"
    return list(_games(folder, "train"))[:train], list(_games(folder, "unseen"))[:unseen]


def _games(folder: Path, split: str) -> Iterator[Task]:
    files = sorted(file for name in SPLITS[split] for file in (folder / name).glob("*/*/game.tw-pddl"))
    for file in files:
        yield {"task_id": f"{file.parents[1].name}-{file.parent.name}", "game": str(file.resolve())}


MAKERS: Final[dict[str, Callable[[str, int, int, Path | None], Splits]]] = {
    "coin": express_tasks,
    "mapreader": express_tasks,
    "cookingworld": express_tasks,
    "alfworld": household_tasks,
    "scienceworld": science_tasks,
    "webshop": shop_tasks,
}


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description="Write the tasks of an environment.")
    parser.add_argument("environment", choices=sorted(MAKERS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=64, help="training tasks at most")
    parser.add_argument("--unseen", type=int, default=64, help="unseen tasks at most")
    parser.add_argument("--games", type=Path, help="folder of ALFWorld games")
    options = parser.parse_args()
    try:
        splits = MAKERS[options.environment](
            options.environment, options.train, options.unseen, options.games
        )
    except GameError as error:
        parser.error(str(error))
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, tasks in zip(("train", "unseen"), splits, strict=True):
        lines = "".join(json.dumps({**task, "environment": options.environment}) + "\n" for task in tasks)
        (options.folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        print(f"{options.folder / name}.jsonl: {len(tasks)} tasks")


if __name__ == "__main__":
    main()
