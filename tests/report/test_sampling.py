from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import Credit, assign_credit
from milegpo_plugin.report.sampling import ATTEMPTS, sample_groups, sample_rollouts
from milegpo_plugin.types import Trajectory


@pytest.fixture(scope="module")
def credit(play_houses: Callable[..., list[Trajectory]]) -> Credit:
    return assign_credit(play_houses(12, 8, 40), CreditConfig())


def test_a_batch_within_the_limits_is_shown_whole(credit: Credit) -> None:
    assert sample_groups(credit, ATTEMPTS[0]) == list(range(12))
    assert len(sample_rollouts(credit, 3, ATTEMPTS[0])) == 8


def test_a_large_batch_is_sampled_evenly_from_first_to_last(credit: Credit) -> None:
    assert sample_groups(credit, replace(ATTEMPTS[0], rollouts=32)) == [0, 4, 7, 11]


def test_at_least_one_group_is_shown(credit: Credit) -> None:
    assert sample_groups(credit, replace(ATTEMPTS[0], rollouts=1)) == [0]


def test_sampled_rollouts_keep_both_outcomes(credit: Credit) -> None:
    picked = sample_rollouts(credit, 5, replace(ATTEMPTS[0], rollouts_per_group=4))
    assert len(picked) == 4
    assert {bool(credit.batch.success_K[rollout]) for rollout in picked} == {True, False}


def test_each_attempt_shows_less_than_the_one_before() -> None:
    for more, less in itertools.pairwise(ATTEMPTS):
        assert less.rollouts < more.rollouts
        assert less.text < more.text
