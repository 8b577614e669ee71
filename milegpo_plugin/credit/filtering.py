"""Which rollouts are worth an update: the group filter of DAPO (arXiv 2503.14476, dynamic sampling)."""

from __future__ import annotations

import numpy as np

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit.advantages import Advantages
from milegpo_plugin.credit.measures import groups_with_outcome_signal
from milegpo_plugin.groups import Batch, Bools


def trained_rollouts(batch: Batch, advantages: Advantages, config: CreditConfig) -> Bools:
    """Rollouts whose group teaches something. Shape (K,).

    ``outcome`` drops the groups whose rollouts all score the same, as DAPO does; ``credit`` keeps those
    of them whose steps step credit tells apart. DAPO samples other tasks in their place; a trainer
    here gets a smaller batch. When no group is left, all are kept, so that no update is empty.
    """
    everyone = np.ones(len(batch.group_K), dtype=np.bool_)
    if config.filter_groups == "none":
        return everyone
    kept_G = groups_with_outcome_signal(batch)
    if config.filter_groups == "credit" and advantages.step_advantage_S is not None:
        kept_G[batch.group_K[batch.rollout_S[advantages.step_advantage_S != 0]]] = True
    return kept_G[batch.group_K] if kept_G.any() else everyone
