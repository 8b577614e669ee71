"""The advantage of each step on the tokens of the trainer's rows.

Axes: ``_R`` rows, ``_T`` response tokens, ``_S`` steps of one rollout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from milegpo_plugin.agl.v1.segments import Segment, Turn, merged_rows, single_rows, truncate
from milegpo_plugin.errors import TrainingError
from milegpo_plugin.rows import EMPTY_RESPONSE, NO_TOKEN_IDS, PROMPT_TOO_LONG, RESPONSE_TOO_LONG
from milegpo_plugin.types import Skipped, Step, Trajectory

ASKED_AGAIN: Final = "same prompt as a later call"
"""The gateway keeps the last of the calls with one prompt."""

ROW_DROPPED: Final = "row dropped by Agent Lightning"


@dataclass(frozen=True, slots=True)
class RowLimits:
    """Lengths in tokens: of a prompt, of a response, and of both together (None: no such limit)."""

    prompt: int
    response: int
    total: int | None = None

    def response_after(self, prompt_length: int) -> int:
        """The longest response that may follow a prompt, which is cut to its own limit first."""
        if self.total is None:
            return self.response
        return min(self.response, max(self.total - min(prompt_length, self.prompt), 0))


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The rows that Agent Lightning laid out, as arrays."""

    rollout_id_R: Sequence[str]
    response_RT: NDArray[np.int64]
    mask_RT: NDArray[np.bool_]  # 1 on the answers of the policy
    dropped_R: NDArray[np.bool_]


@dataclass(slots=True)
class Placement:
    """``score_RT`` has the advantage of its step on every token of a step with credit.

    ``trained_RT`` marks those tokens; all others must not be trained. ``skipped`` has the steps
    without such a token, with the reason.
    """

    score_RT: NDArray[np.float32]
    trained_RT: NDArray[np.bool_]
    skipped: list[Skipped] = field(default_factory=list)


def place_advantages(
    batch: Batch,
    trajectories: Sequence[Trajectory],
    turns: Mapping[str, Sequence[Turn]],
    advantages: Iterable[NDArray[np.float64] | None],
    *,
    level: str,
    limits: RowLimits,
) -> Placement:
    """Find the tokens of every step and put its advantage there.

    Args:
        batch: all rows of the batch.
        trajectories: its rollouts.
        turns: the model calls of each rollout that Agent Lightning makes rows of, in order.
        advantages: of the steps of each trajectory, [steps]; None for one without credit.
        level: ``transition`` or ``trajectory``.
        limits: of the rows.

    Raises:
        TrainingError: the rows are not those that the level and the limits give.
    """
    shape = batch.response_RT.shape
    placement = Placement(np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.bool_))
    rows_of: defaultdict[str, list[int]] = defaultdict(list)
    for row, rollout_id in enumerate(batch.rollout_id_R):
        rows_of[rollout_id].append(row)
    for trajectory, advantage_S in zip(trajectories, advantages, strict=True):
        own = turns.get(trajectory.rollout_id, ())
        expected = _expected_rows(own, level, limits)
        rows = rows_of[trajectory.rollout_id]
        _check_rows(batch, trajectory.rollout_id, own, rows, expected)
        if advantage_S is not None:
            steps = match_steps(own, trajectory.steps)
            placed: dict[int, str | None] = {}
            for row, segments in zip(rows, expected, strict=True):
                reason = _drop_reason(batch.dropped_R[row], own[segments[0].turn], limits)
                placed |= dict.fromkeys(_place(placement, row, segments, steps, advantage_S), reason)
            placement.skipped += _skipped_steps(trajectory, steps, placed)
    return placement


def match_steps(turns: Sequence[Turn], steps: Sequence[Step]) -> list[int | None]:
    """The step of each call, by its token ids; None for a call that is no step.

    Of several steps with one prompt the gateway keeps the last; without prompt ids it keeps all.
    """
    known: defaultdict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = defaultdict(list)
    for index, step in enumerate(steps):
        known[tuple(step.prompt_token_ids or ()), tuple(step.response_token_ids or ())].append(index)
    found: list[int | None] = []
    for prompt, response in turns:
        candidates = known.get((tuple(prompt), tuple(response)), [])
        found.append(candidates.pop(-1 if prompt else 0) if candidates else None)
    return found


def _expected_rows(turns: Sequence[Turn], level: str, limits: RowLimits) -> list[list[Segment]]:
    rows = merged_rows(turns) if level == "trajectory" else single_rows(turns)
    cut = [truncate(row, limits.response_after(len(turns[row[0].turn].prompt_ids))) for row in rows]
    return [row for row in cut if row]


def _check_rows(
    batch: Batch,
    rollout_id: str,
    turns: Sequence[Turn],
    rows: Sequence[int],
    expected: Sequence[Sequence[Segment]],
) -> None:
    """The batch must hold exactly these rows: a step's credit must never reach another step's tokens."""
    if len(rows) != len(expected):
        raise TrainingError(_unexpected(rollout_id, f"{len(expected)} rows", str(len(rows))))
    for row, segments in zip(rows, expected, strict=True):
        masked = np.zeros(batch.mask_RT.shape[1], dtype=np.bool_)
        for turn, start, stop in segments:
            masked[start:stop] = True
            wanted = turns[turn].response_ids[: stop - start]
            if batch.response_RT[row, start:stop].tolist() != list(wanted):
                raise TrainingError(
                    _unexpected(rollout_id, f"the answer of call {turn} at {start}", "other tokens")
                )
        if not np.array_equal(masked, batch.mask_RT[row]):
            raise TrainingError(_unexpected(rollout_id, f"a mask over {masked.sum()} tokens", "another one"))


def _unexpected(rollout_id: str, wanted: str, got: str) -> str:
    return (
        f"rollout {rollout_id}: the trainer's rows must have {wanted}, got {got}: this release of Agent "
        "Lightning merges model calls in a way that milegpo_plugin.agl.v1 does not know"
    )


def _drop_reason(dropped: np.bool_, first: Turn, limits: RowLimits) -> str | None:
    if not dropped:
        return None
    return PROMPT_TOO_LONG if len(first.prompt_ids) > limits.prompt else ROW_DROPPED


def _place(
    placement: Placement,
    row: int,
    segments: Sequence[Segment],
    steps: Sequence[int | None],
    advantage_S: NDArray[np.float64],
) -> Iterator[int]:
    """Write the advantages of one row; gives the steps that have tokens in it."""
    for turn, start, stop in segments:
        step = steps[turn]
        if step is not None:
            placement.score_RT[row, start:stop] = advantage_S[step]
            placement.trained_RT[row, start:stop] = True
            yield step


def _skipped_steps(
    trajectory: Trajectory, steps: Sequence[int | None], placed: Mapping[int, str | None]
) -> Iterator[Skipped]:
    """The steps that are not trained; ``placed`` has those with tokens and why their row was dropped."""
    for index, step in enumerate(trajectory.steps):
        missing = RESPONSE_TOO_LONG if index in steps else _missing(step)
        reason = placed.get(index, missing)
        if reason:
            yield Skipped("step", f"{trajectory.rollout_id}#{index}", reason)


def _missing(step: Step) -> str:
    """Why Agent Lightning has no call for a step."""
    if step.response_token_ids is None:
        return NO_TOKEN_IDS
    return ASKED_AGAIN if step.response_token_ids else EMPTY_RESPONSE
