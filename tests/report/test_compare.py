from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.report.compare import compare_credit
from milegpo_plugin.report.page import batch_facts
from milegpo_plugin.types import Step, Trajectory


def test_an_estimator_agrees_with_itself(fork: Callable[[], list[Trajectory]]) -> None:
    comparison = compare_credit(batch_facts(fork(), CreditConfig(), CreditConfig()), [0])
    assert comparison is not None
    assert comparison.correlation == pytest.approx(1.0)
    assert comparison.opposite == 0
    assert comparison.most == []


def test_scale_alone_is_no_disagreement(fork: Callable[[], list[Trajectory]]) -> None:
    louder = CreditConfig(step_weight=3.0, episode_weight=3.0)
    comparison = compare_credit(batch_facts(fork(), CreditConfig(), louder), [0])
    assert comparison is not None
    assert comparison.most == []


def test_the_largest_gap_comes_first_and_each_move_once_a_direction(
    play_houses: Callable[..., list[Trajectory]],
) -> None:
    facts = batch_facts(play_houses(4, 8, 50), CreditConfig(), CreditConfig(estimator="grpo"))
    comparison = compare_credit(facts, [1, 3])
    assert comparison is not None
    gaps = [abs(item.first - item.second) for item in comparison.most]
    assert gaps == sorted(gaps, reverse=True)
    assert {item.group for item in comparison.most} <= {1, 3}
    offsets = facts.credit.batch.offset_K
    moves = [
        (facts.credit.graph.edge_S[offsets[item.rollout] + item.step], item.first > item.second)
        for item in comparison.most
    ]
    assert len(set(moves)) == len(moves)


def test_rollouts_that_one_estimator_leaves_out_are_not_compared(
    fork: Callable[[], list[Trajectory]],
) -> None:
    broken = Trajectory(
        task_id="fork", rollout_id="broken", flags=["failed"], reward=0.0, steps=[Step(state="start")]
    )
    facts = batch_facts(
        [*fork(), broken], CreditConfig(on_failure="zero"), CreditConfig(estimator="grpo", on_failure="drop")
    )
    comparison = compare_credit(facts, [0])
    assert comparison is not None
    assert comparison.steps == len(facts.credit.advantage_S) - 1
    assert np.isfinite([item.second for item in comparison.most]).all()


def test_without_variation_there_is_no_correlation(fork: Callable[[], list[Trajectory]]) -> None:
    comparison = compare_credit(
        batch_facts(fork()[:1], CreditConfig(estimator="grpo"), CreditConfig(estimator="rloo")), [0]
    )
    assert comparison is not None
    assert comparison.correlation is None
