"""Which rollouts are worth an update: the group filter of DAPO (arXiv 2503.14476, dynamic sampling)."""

from __future__ import annotations

import numpy as np

from milegpo_plugin.credit.measures import groups_with_outcome_signal, steps_with_credit
from milegpo_plugin.credit.result import Credit
from milegpo_plugin.groups import Bools


def informative_rollouts(credit: Credit, *, rescue: bool = True) -> Bools:
    """Input trajectories whose group teaches something. Shape (I,).

    DAPO drops the groups whose rollouts all score the same, since their outcomes give no signal.
    With ``rescue`` such a group stays when step credit still tells its steps apart.
    """
    batch = credit.batch
    kept_G = groups_with_outcome_signal(batch)
    if rescue:
        kept_G[batch.group_K[batch.rollout_S[steps_with_credit(credit)]]] = True
    kept_I = np.zeros(len(batch.row_I), dtype=np.bool_)
    kept_I[batch.input_K] = kept_G[batch.group_K]
    return kept_I
