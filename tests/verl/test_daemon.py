from __future__ import annotations

import numpy as np
import torch


def advantages_by_row(batch) -> dict[tuple[str, int], float]:
    scores = batch.batch["token_level_scores"].sum(-1).numpy()
    rollouts = batch.non_tensor_batch["rollout_id_list"]
    turns = batch.non_tensor_batch["turn_index_list"]
    return {(r, int(t)): s for r, t, s in zip(rollouts, turns, scores, strict=True)}


def test_smoke(make_stage, walks):
    stage = make_stage(walks)
    stage.run_batch(["a", "b"])
    batch, metrics = stage.batch()
    print(metrics)
    print(batch.batch)
    print(advantages_by_row(batch))
    assert batch.batch["token_level_scores"].dtype == torch.float32
    assert np.isfinite(batch.batch["token_level_scores"]).all()
