"""ALFWorld with the paper's settings: ``python examples/verl/train_alfworld.py --dry-run``.

Needs ``pip install alfworld==0.4.2`` and its games (``alfworld-download``) in ``$ALFWORLD_DATA``.
"""

from __future__ import annotations

import os
from pathlib import Path

from recipe import Tasks, run

TRAIN_GAMES = 3553


def games(split: str) -> Tasks:
    """One task per solvable game of a split, in the order of their paths."""
    folder = Path(os.environ["ALFWORLD_DATA"]) / "json_2.1.1" / split
    return [{"game": str(path)} for path in sorted(folder.glob("*/*/game.tw-pddl"))]


if __name__ == "__main__":
    run(
        "alfworld",
        agent="alfworld_player.py:play",
        train=lambda: games("train"),
        validation=lambda: games("valid_unseen"),
        train_size=TRAIN_GAMES,
    )
