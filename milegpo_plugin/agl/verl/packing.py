"""Rows of model calls → rows of the trainer: one call each, or a whole conversation each.

A conversation is merged as long as a prompt goes on where the last answer ended (the rule of Agent
Lightning's ``trajectory`` level). Each run of ones in a mask is one step: calls that would touch,
without a prompt token in between, stay in rows of their own. Axis suffix: ``_T`` tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from milegpo_plugin.rows import PROMPT_TOO_LONG, RESPONSE_TOO_LONG, Row
from milegpo_plugin.types import Skipped


@dataclass(frozen=True, slots=True)
class Limits:
    """Longest prompt and longest response of a row, in tokens."""

    prompt: int
    response: int


@dataclass(frozen=True, slots=True, eq=False)
class PackedRow:
    """One row of the trainer; ``mask_T`` and ``score_T`` run along ``response_T``.

    ``score_T`` holds the advantage of a step on its last token that is left, 0 elsewhere.
    """

    rollout_index: int
    step_indices: tuple[int, ...]
    prompt_T: NDArray[np.int64]
    response_T: NDArray[np.int64]
    mask_T: NDArray[np.bool_]
    score_T: NDArray[np.float32]
    truncated: bool


@dataclass(slots=True)
class Packed:
    """The rows of one update, and what did not fit.

    ``split_rollouts`` counts rollouts that needed more than one row at the ``trajectory`` level.
    """

    rows: list[PackedRow] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    split_rollouts: int = 0

    @property
    def truncated(self) -> int:
        """Rows that lost tokens at their end."""
        return sum(row.truncated for row in self.rows)


def pack_rows(rows: Sequence[Row], rollout_ids: Sequence[str], level: str, limits: Limits) -> Packed:
    """Lay model calls out as rows of the trainer.

    Args:
        rows: model calls with credit, by rollout and step.
        rollout_ids: name of each ``rollout_index``, for the reports.
        level: ``transition`` or ``trajectory``.
        limits: the padded size of a row.
    """
    packed = Packed()
    for index, group in groupby(rows, key=lambda row: row.rollout_index):
        calls = list(group)
        segments = [[call] for call in calls] if level == "transition" else merge_calls(calls)
        packed.split_rollouts += level == "trajectory" and len(segments) > 1
        for number, segment in enumerate(segments):
            overflows = level == "trajectory" and number > 0
            _lay_out(segment, rollout_ids[index], limits, packed, prompt_may_overflow=overflows)
    return packed


def merge_calls(calls: Sequence[Row]) -> list[list[Row]]:
    """Conversations: each call joins the longest one that its prompt goes on with.

    Conversations may alternate, as those of two agents do.
    """
    conversations: list[list[Row]] = []
    contexts: list[NDArray[np.int64]] = []
    for call in calls:
        fitting = [i for i, context in enumerate(contexts) if _goes_on(context, call.prompt_token_ids_T)]
        context = np.concatenate([call.prompt_token_ids_T, call.response_token_ids_T])
        if fitting:
            place = max(fitting, key=lambda i: len(contexts[i]))
            conversations[place].append(call)
            contexts[place] = context
        else:
            conversations.append([call])
            contexts.append(context)
    return conversations


def _goes_on(context: NDArray[np.int64], prompt: NDArray[np.int64]) -> bool:
    return len(prompt) > len(context) and np.array_equal(prompt[: len(context)], context)


def _lay_out(
    calls: Sequence[Row], rollout_id: str, limits: Limits, packed: Packed, *, prompt_may_overflow: bool
) -> None:
    """One row for the calls of a conversation; steps that do not fit go to ``packed.skipped``.

    A later part of a split conversation opens with its whole history. What exceeds the prompt
    there goes on in the response, outside the mask.
    """
    first, last = calls[0], calls[-1]
    if len(first.prompt_token_ids_T) > limits.prompt and not prompt_may_overflow:
        packed.skipped += [_skip(rollout_id, call, PROMPT_TOO_LONG) for call in calls]
        return
    origin = min(len(first.prompt_token_ids_T), limits.prompt)
    response_T = np.concatenate([last.prompt_token_ids_T, last.response_token_ids_T])[origin:]
    mask_T = np.zeros(len(response_T), dtype=np.bool_)
    score_T = np.zeros(len(response_T), dtype=np.float32)
    kept: list[int] = []
    for call in calls:
        start = len(call.prompt_token_ids_T) - origin
        end = min(start + len(call.response_token_ids_T), limits.response)
        if start >= end:
            packed.skipped.append(_skip(rollout_id, call, RESPONSE_TOO_LONG))
            continue
        mask_T[start:end] = True
        score_T[end - 1] = call.advantage
        kept.append(call.step_index)
    if kept:
        prompt_T, size = first.prompt_token_ids_T[:origin], limits.response
        cut = len(response_T) > size
        packed.rows.append(
            PackedRow(
                calls[0].rollout_index,
                tuple(kept),
                prompt_T,
                response_T[:size],
                mask_T[:size],
                score_T[:size],
                truncated=cut,
            )
        )


def _skip(rollout_id: str, call: Row, reason: str) -> Skipped:
    return Skipped("step", f"{rollout_id}#{call.step_index}", reason)
