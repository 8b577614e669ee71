"""Groups that teach nothing stay out of the update when the config says so."""

from __future__ import annotations

import pytest

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit
from milegpo_plugin.rows import build_rows


@pytest.fixture
def group_of(rollout):
    def build(task_id, *rollouts):
        return [
            rollout(states, reward, task_id=task_id, rollout_id=f"{task_id}{number}")
            for number, (states, reward) in enumerate(rollouts)
        ]

    return build


@pytest.fixture
def batch(group_of):
    """Two groups that score alike, one of which step credit tells apart, and one with both outcomes."""
    return [
        *group_of("won", (["a", "b"], 1.0), (["a", "a", "b"], 1.0)),
        *group_of("stuck", (["a"], 0.0), (["a"], 0.0)),
        *group_of("mixed", (["a"], 0.0), (["a"], 1.0), (["a"], None)),
    ]


def trained(batch, **settings):
    credit = assign_credit(batch, CreditConfig(**settings))
    return {item.rollout_id for index, item in enumerate(batch) if credit.advantages(index) is not None}


MIXED = {"mixed0", "mixed1"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"won0", "won1", "stuck0", "stuck1"} | MIXED),
        ({"filter_groups": "outcome"}, MIXED),
        ({"filter_groups": "credit"}, {"won0", "won1"} | MIXED),
        ({"filter_groups": "credit", "estimator": "grpo"}, MIXED),
    ],
)
def test_the_filter_keeps_groups_that_teach_something(batch, settings, expected):
    assert trained(batch, **settings) == expected


def test_what_is_filtered_is_named_with_its_reason(batch):
    credit = assign_credit(batch, CreditConfig(filter_groups="credit"))
    named = [(item.id, item.reason) for item in credit.skipped]
    assert named == [
        ("mixed2", "no reward"),
        ("stuck0", "group without signal"),
        ("stuck1", "group without signal"),
    ]
    assert credit.metrics()["skipped/group without signal"] == 2


def test_filtering_changes_no_advantage(batch):
    plain, filtered = (
        list(assign_credit(batch, CreditConfig(filter_groups=mode)).step_records())
        for mode in ("none", "outcome")
    )
    assert plain == filtered


def test_filtered_rollouts_make_no_training_rows(batch):
    for item in batch:
        for step in item.steps:
            step.prompt_token_ids, step.response_token_ids = [1], [2]
    rows = build_rows(batch, assign_credit(batch, CreditConfig(filter_groups="outcome")))
    assert {row.task_id for row in rows.rows} == {"mixed"}
    assert rows.skip_counts() == {"no credit": 5}


def test_a_batch_in_which_no_group_teaches_is_kept_whole(group_of):
    stuck = group_of("stuck", (["a"], 0.0), (["a"], 0.0))
    assert trained(stuck, filter_groups="outcome") == {"stuck0", "stuck1"}
