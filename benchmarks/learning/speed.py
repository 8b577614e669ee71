"""How fast the runs were, and which part of the time each stage took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

PARTS: Final = ("collect", "credit", "update")
HEAD: Final = (
    "game",
    "rollouts/s",
    "sampled tokens/s",
    "trained tokens/s",
    *(f"{part}, share" for part in PARTS),
)


def speed_table(games: Iterable[str], lines: Sequence[dict[str, str]], rollouts: int) -> Iterable[str]:
    """One line a game over the iterations of all its runs, in Markdown.

    Args:
        games: names, in order.
        lines: of ``learning.csv``; those without times are passed over.
        rollouts: of an iteration.
    """
    yield f"| {' | '.join(HEAD)} |"
    yield "|---|" + "---:|" * (len(HEAD) - 1)
    for game in games:
        timed = [line for line in lines if line["game"] == game and line["seconds_update"]]
        if timed:
            yield f"| {game} | {' | '.join(_cells(timed, rollouts))} |"


def _cells(timed: Sequence[dict[str, str]], rollouts: int) -> Iterable[str]:
    tokens_I = np.array([float(line["tokens"]) for line in timed])
    seconds = {part: np.array([float(line[f"seconds_{part}"]) for line in timed]) for part in PARTS}
    whole_I = np.sum(list(seconds.values()), axis=0)
    rates = (rollouts / whole_I, tokens_I / seconds["collect"], tokens_I / seconds["update"])
    for rate_I in rates:
        low, middle, high = np.quantile(rate_I, (0.1, 0.5, 0.9))
        yield f"{middle:,.0f} [{low:,.0f}, {high:,.0f}]"
    for part_I in seconds.values():
        yield f"{part_I.sum() / whole_I.sum():.1%}"
