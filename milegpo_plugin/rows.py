"""Training rows: one per step, its token ids and its advantage. Pure numpy; imports no trainer.

Nothing vanishes: every step without a row is in ``RowBatch.skipped`` with its reason.
Axis suffix: ``_T`` tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from milegpo_plugin.errors import TrainingError
from milegpo_plugin.types import Skipped, Step, Trajectory

NO_CREDIT = "no credit"
NO_TOKEN_IDS = "no token ids"
EMPTY_RESPONSE = "empty response"
PROMPT_TOO_LONG = "prompt too long"
RESPONSE_TOO_LONG = "response too long"


class StepCredit(Protocol):
    """What rows need of a credit assignment."""

    def advantages(self, index: int, /) -> NDArray[np.float64] | None:
        """Advantage of each step of trajectory ``index``, shape [steps]; None without credit."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One model call to learn from.

    ``logprobs_T`` are the sampler's, [response tokens]; None when the trace has none, or not
    one for each response token.
    """

    task_id: str
    rollout_index: int
    step_index: int
    prompt_token_ids_T: NDArray[np.int64]
    response_token_ids_T: NDArray[np.int64]
    logprobs_T: NDArray[np.float32] | None
    advantage: np.float32

    @property
    def advantages_T(self) -> NDArray[np.float32]:
        """The step's advantage on each of its response tokens, [response tokens]."""
        return np.full(len(self.response_token_ids_T), self.advantage, dtype=np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class RowBatch:
    """The rows of one update, and what was left out."""

    rows: tuple[Row, ...]
    skipped: tuple[Skipped, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.rows)

    def skip_counts(self) -> dict[str, int]:
        """How many steps or rollouts were left out, by reason."""
        return dict(Counter(item.reason for item in self.skipped))


def build_rows(
    trajectories: Sequence[Trajectory],
    credit: StepCredit,
    *,
    max_prompt_tokens: int | None = None,
    max_response_tokens: int | None = None,
) -> RowBatch:
    """One row per step that has credit and token ids.

    Raises:
        TrainingError: the credit of a trajectory is not one finite number per step.
    """
    limits = (max_prompt_tokens, max_response_tokens)
    rows: list[Row] = []
    skipped: list[Skipped] = []
    for index, trajectory in enumerate(trajectories):
        advantage_S = credit.advantages(index)
        if advantage_S is None:
            skipped.append(Skipped("rollout", trajectory.rollout_id, NO_CREDIT))
            continue
        _check_advantages(trajectory, advantage_S)
        for item in _rows_of(index, trajectory, advantage_S, limits):
            rows.append(item) if isinstance(item, Row) else skipped.append(item)
    return RowBatch(tuple(rows), tuple(skipped))


def _check_advantages(trajectory: Trajectory, advantage_S: NDArray[np.float64]) -> None:
    expected = (len(trajectory.steps),)
    if advantage_S.shape != expected:
        raise TrainingError(
            f"rollout {trajectory.rollout_id}: credit must have one advantage per step, shape "
            f"{expected}, got {advantage_S.shape}"
        )
    for step in np.flatnonzero(~np.isfinite(advantage_S)):
        raise TrainingError(
            f"rollout {trajectory.rollout_id}, step {step}: the advantage must be finite, "
            f"got {advantage_S[step]!r}"
        )


def _rows_of(
    index: int,
    trajectory: Trajectory,
    advantage_S: NDArray[np.float64],
    limits: tuple[int | None, int | None],
) -> Iterator[Row | Skipped]:
    for position, (step, advantage) in enumerate(zip(trajectory.steps, advantage_S, strict=True)):
        reason = _skip_reason(step, *limits)
        if reason:
            yield Skipped("step", f"{trajectory.rollout_id}#{position}", reason)
            continue
        response = np.asarray(step.response_token_ids, dtype=np.int64)
        yield Row(
            task_id=trajectory.task_id,
            rollout_index=index,
            step_index=position,
            prompt_token_ids_T=np.asarray(step.prompt_token_ids, dtype=np.int64),
            response_token_ids_T=response,
            logprobs_T=_logprobs(step, len(response)),
            advantage=np.float32(advantage),
        )


def _skip_reason(step: Step, max_prompt: int | None, max_response: int | None) -> str | None:
    if not step.prompt_token_ids or step.response_token_ids is None:
        return NO_TOKEN_IDS
    if not step.response_token_ids:
        return EMPTY_RESPONSE
    if max_prompt is not None and len(step.prompt_token_ids) > max_prompt:
        return PROMPT_TOO_LONG
    if max_response is not None and len(step.response_token_ids) > max_response:
        return RESPONSE_TOO_LONG
    return None


def _logprobs(step: Step, tokens: int) -> NDArray[np.float32] | None:
    if step.logprobs is None or len(step.logprobs) != tokens:
        return None
    return np.asarray(step.logprobs, dtype=np.float32)
