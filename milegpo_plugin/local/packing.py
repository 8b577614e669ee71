"""From training rows to padded tensors: what to score, under which masks, with which weight.

Forced tokens are no decision of the policy: they are context, and count nowhere.

Axis suffixes: ``_B`` rows of a microbatch, ``_T`` response tokens, ``_N`` free tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from milegpo_plugin.local.distribution import unpack_masks
from milegpo_plugin.local.records import Mask, SamplingRecords
from milegpo_plugin.rows import RowBatch

NO_SAMPLING_RECORD = "no_sampling_record"
NO_CHOICE = "no_choice"


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A row with its sampling record, ready to score.

    ``free_N`` are the positions within the response where the policy had a choice, and
    ``masks``, ``logprobs_N`` what the sampler drew from there.
    """

    tokens: NDArray[np.int64]
    prompt_length: int
    free_N: NDArray[np.int64]
    masks: tuple[Mask | None, ...]
    logprobs_N: NDArray[np.float32]
    temperature: float
    advantage: float

    @property
    def order(self) -> tuple[bytes, float]:
        """Sort key by content: the same rows in any order give the same update."""
        return self.tokens.tobytes(), self.advantage


@dataclass(frozen=True, slots=True, eq=False)
class Microbatch:
    """Left-padded rows, and the free tokens among them."""

    ids: Tensor  # [B, length]
    attended: Tensor  # [B, length]
    columns: Tensor  # [C], positions whose logits are needed
    row_N: Tensor  # row of each free token
    column_N: Tensor  # its place in ``columns``
    token_N: Tensor
    allowed_NV: Tensor
    temperature_N: Tensor
    old_logprobs_N: Tensor
    advantage_N: Tensor


def match_records(rows: RowBatch, records: SamplingRecords) -> tuple[list[Example], dict[str, int]]:
    """Examples in an order that depends on their content only, and counts of the rows left out."""
    skipped = {NO_SAMPLING_RECORD: 0, NO_CHOICE: 0}
    examples: list[Example] = []
    for row in rows.rows:
        record = records.find(row.prompt_token_ids_T, row.response_token_ids_T)
        if record is None:
            skipped[NO_SAMPLING_RECORD] += 1
            continue
        free_N = np.flatnonzero(record.free_T())
        if not len(free_N):
            skipped[NO_CHOICE] += 1
            continue
        examples.append(
            Example(
                tokens=np.concatenate([row.prompt_token_ids_T, row.response_token_ids_T]),
                prompt_length=len(row.prompt_token_ids_T),
                free_N=free_N,
                masks=tuple(record.masks_T[position] for position in free_N),
                logprobs_N=record.logprobs_T[free_N],
                temperature=record.temperature,
                advantage=float(row.advantage),
            )
        )
    return sorted(examples, key=lambda example: example.order), skipped


def microbatches(examples: Sequence[Example], max_tokens: int) -> Iterator[list[int]]:
    """Indices of examples of similar length, at most ``max_tokens`` padded tokens each."""
    group: list[int] = []
    for index in sorted(range(len(examples)), key=lambda index: len(examples[index].tokens), reverse=True):
        longest = len(examples[group[0]].tokens) if group else 0
        if group and longest * (len(group) + 1) > max_tokens:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def pack(examples: Sequence[Example], *, filler: int, vocabulary: int, device: torch.device) -> Microbatch:
    """Pad examples on the left and lay out their free tokens row by row."""
    length = max(len(example.tokens) for example in examples)
    ids = np.full((len(examples), length), filler, dtype=np.int64)
    attended = np.zeros_like(ids)
    for row, example in enumerate(examples):
        ids[row, length - len(example.tokens) :] = example.tokens
        attended[row, length - len(example.tokens) :] = 1
    counts = [len(example.free_N) for example in examples]
    row_N = np.repeat(np.arange(len(examples)), counts)
    position_N = np.concatenate(
        [length - len(example.tokens) + example.prompt_length + example.free_N for example in examples]
    )
    columns, column_N = np.unique(position_N - 1, return_inverse=True)
    allowed_NV = unpack_masks([mask for example in examples for mask in example.masks], vocabulary)

    def per_token(values: Sequence[float]) -> Tensor:
        return torch.from_numpy(np.repeat(np.asarray(values, dtype=np.float32), counts)).to(device)

    def tensor(array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(device)

    return Microbatch(
        ids=tensor(ids),
        attended=tensor(attended),
        columns=tensor(columns),
        row_N=tensor(row_N),
        column_N=tensor(column_N),
        token_N=tensor(ids[row_N, position_N]),
        allowed_NV=tensor(allowed_NV),
        temperature_N=per_token([example.temperature for example in examples]),
        old_logprobs_N=tensor(np.concatenate([example.logprobs_N for example in examples])),
        advantage_N=per_token([example.advantage for example in examples]),
    )
