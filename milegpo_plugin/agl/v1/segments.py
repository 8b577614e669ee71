"""Which tokens of the trainer's rows belong to which model call.

At the level ``trajectory`` Agent Lightning merges a call into the row before it when its prompt
begins with that row's prompt and everything after it; what the prompt adds is masked. Turn
boundaries are not kept in the batch, so they are found again by the same rule, and the batch is
checked against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Turn(NamedTuple):
    """One model call as the trainer sees it."""

    prompt_ids: Sequence[int]
    response_ids: Sequence[int]


class Segment(NamedTuple):
    """Response tokens ``start`` to ``stop`` of a row are the answer of call ``turn`` of the rollout."""

    turn: int
    start: int
    stop: int


def merged_rows(turns: Sequence[Turn]) -> list[list[Segment]]:
    """The rows of one rollout at the level ``trajectory``, untruncated."""
    rows: list[list[Segment]] = []
    context: list[int] = []
    origin = 0
    for index, (prompt, response) in enumerate(turns):
        if not rows or list(prompt[: len(context)]) != context:
            rows.append([])
            origin = len(prompt)
        start = len(prompt) - origin
        rows[-1].append(Segment(index, start, start + len(response)))
        context = [*prompt, *response]
    return rows


def single_rows(turns: Sequence[Turn]) -> list[list[Segment]]:
    """The rows of one rollout at the level ``transition``."""
    return [[Segment(index, 0, len(turn.response_ids))] for index, turn in enumerate(turns)]


def truncate(row: Sequence[Segment], limit: int) -> list[Segment]:
    """What is left of a row of at most ``limit`` response tokens."""
    return [segment._replace(stop=min(segment.stop, limit)) for segment in row if segment.start < limit]
