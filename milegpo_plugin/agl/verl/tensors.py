"""Packed rows → the trainer's ``DataProto``: prompts padded on the left, responses on the right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from tensordict import TensorDict
from verl import DataProto

from milegpo_plugin.agl.verl.packing import Limits, PackedRow


def build_batch(
    rows: Sequence[PackedRow],
    limits: Limits,
    *,
    data_ids: Sequence[str],
    rollout_ids: Sequence[str],
    pad_token_id: int,
    device: torch.device,
) -> DataProto:
    """The batch that Agent Lightning's trainer expects from its daemon.

    Args:
        rows: packed rows, none longer than ``limits``.
        limits: padded sizes, P prompt tokens and T response tokens.
        data_ids: group of each ``rollout_index``.
        rollout_ids: rollout of each ``rollout_index``.
        pad_token_id: the tokenizer's padding token.
        device: where the tensors go.

    Returns:
        Tensors of [rows, P], [rows, T] and [rows, P + T]; ``token_level_scores`` is float32 and holds
        the advantage of each step on its last token. ``turn_index_list`` has the first step of each
        row, ``step_indices_list`` all of them.
    """
    count = len(rows)
    prompts = np.full((count, limits.prompt), pad_token_id, dtype=np.int64)
    responses = np.full((count, limits.response), pad_token_id, dtype=np.int64)
    attention = np.zeros((count, limits.prompt + limits.response), dtype=np.int64)
    mask = np.zeros((count, limits.response), dtype=np.int64)
    scores = np.zeros((count, limits.response), dtype=np.float32)
    for i, row in enumerate(rows):
        before, after = len(row.prompt_T), len(row.response_T)
        prompts[i, limits.prompt - before :] = row.prompt_T
        responses[i, :after] = row.response_T
        attention[i, limits.prompt - before : limits.prompt + after] = 1
        mask[i, :after] = row.mask_T
        scores[i, :after] = row.score_T
    arrays = {
        "prompts": prompts,
        "responses": responses,
        "input_ids": np.concatenate([prompts, responses], axis=1),
        "attention_mask": attention,
        "position_ids": np.maximum(attention.cumsum(axis=1) - 1, 0),
        "response_mask": mask,
        "token_level_scores": scores,
        "is_drop_mask": np.zeros(count, dtype=np.bool_),
    }
    tensors = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
    batch = DataProto(batch=TensorDict(tensors, batch_size=count))
    batch.non_tensor_batch = {
        "data_id_list": np.array([data_ids[row.rollout_index] for row in rows]),
        "rollout_id_list": np.array([rollout_ids[row.rollout_index] for row in rows]),
        "turn_index_list": np.array([row.step_indices[0] for row in rows]),
        "step_indices_list": np.fromiter((row.step_indices for row in rows), dtype=object, count=count),
    }
    return batch
