"""The array code against the same equations in plain Python, on batches of any shape."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit

NODE_FIELDS = (
    "visits",
    "successes",
    "milestone_score",
    "trap_score",
    "branch_evidence",
    "progress_evidence",
    "calibrated_score",
    "milestone_potential",
    "trap_potential",
)
STEP_FIELDS = (
    "graph_return",
    "shaped_return",
    "delta_plus",
    "delta_minus",
    "graph_advantage",
    "shaped_advantage",
    "episode_advantage",
    "advantage",
)


def numbers(values):
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def assert_close(ours, theirs, what):
    np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=1e-9, atol=1e-9, err_msg=what)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_every_value_of_any_batch_agrees_with_plain_python(data, batches, settings_of_credit, oracle):
    batch, config = data.draw(batches()), data.draw(settings_of_credit())
    groups = oracle.plain_credit(batch, config)
    credit = assign_credit(batch, config)

    records = list(credit.node_records())
    nodes = [record for group in groups.values() for record in group.nodes.values()]
    assert len(records) == len(nodes)
    for field in NODE_FIELDS:
        assert_close([record[field] for record in records], [node[field] for node in nodes], field)

    steps = [step for group in groups.values() for rollout in group.steps for step in rollout]
    lines = list(credit.step_records())
    assert [line["state"] for line in lines] == [step["state"] for step in steps]
    for field in STEP_FIELDS:
        assert_close([line[field] for line in lines], [step[field] for step in steps], field)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), estimator=st.sampled_from(["gigpo", "grpo"]))
def test_baselines_of_any_batch_agree_with_plain_python(data, batches, oracle, estimator):
    batch, norm = data.draw(batches()), data.draw(st.sampled_from(["mean", "mean_std"]))
    config = CreditConfig(estimator=estimator, norm=norm)
    groups = oracle.plain_credit(batch, config)
    theirs = [step[estimator] for group in groups.values() for rollout in group.steps for step in rollout]
    assert_close(assign_credit(batch, config).advantage_S, theirs, estimator)
