"""Which rollouts are worth an update: the group filter of DAPO (arXiv 2503.14476, dynamic sampling)."""

from __future__ import annotations

import numpy as np

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit.measures import groups_with_outcome_signal
from milegpo_plugin.groups import Batch, Bools, Floats


def trained_rollouts(batch: Batch, step_advantage_S: Floats | None, config: CreditConfig) -> Bools:
    """Rollouts whose group teaches something. Shape (K,).

    DAPO samples other tasks in the place of those it drops; a trainer here gets a smaller batch. When
    no group is left, all are kept, so that no update is empty.
    """
    taught_G = teaching_groups(batch, step_advantage_S, config)
    return (taught_G if taught_G.any() else ~taught_G)[batch.group_K]


def teaching_groups(batch: Batch, step_advantage_S: Floats | None, config: CreditConfig) -> Bools:
    """Groups that ``filter_groups`` keeps. Shape (G,).

    ``outcome`` drops the groups whose rollouts all score the same, as DAPO does; ``credit`` keeps those
    of them whose steps step credit tells apart.
    """
    if config.filter_groups == "none":
        return np.ones(len(batch.task_ids), dtype=np.bool_)
    taught_G = groups_with_outcome_signal(batch)
    if config.filter_groups == "credit" and step_advantage_S is not None:
        taught_G[batch.group_K[batch.rollout_S[step_advantage_S != 0]]] = True
    return taught_G
