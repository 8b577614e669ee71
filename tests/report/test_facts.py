from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from milegpo_plugin.config import ESTIMATORS, CreditConfig
from milegpo_plugin.report.facts import Facts
from milegpo_plugin.report.group_data import group_data
from milegpo_plugin.report.page import batch_facts
from milegpo_plugin.report.sampling import ATTEMPTS
from milegpo_plugin.types import Trajectory


def by_state(facts: Facts) -> dict[str, dict[str, object]]:
    return {node["state"]: node for node in facts.nodes}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_parts_of_a_step_sum_to_its_advantage(
    play_houses: Callable[..., list[Trajectory]], estimator: str
) -> None:
    parts = batch_facts(play_houses(2), CreditConfig.load({"estimator": estimator, "step_weight": 0.7})).parts
    known = [part for part in (parts.step_S, parts.episode_S) if part is not None]
    np.testing.assert_allclose(sum(known), parts.advantage_S, atol=1e-12)
    if parts.graph_S is not None:
        np.testing.assert_allclose(parts.graph_S + parts.milestone_S, parts.step_S, atol=1e-12)


def test_a_part_that_the_estimator_lacks_is_unknown_not_zero(fork: Callable[[], list[Trajectory]]) -> None:
    parts = batch_facts(fork(), CreditConfig(estimator="grpo")).parts
    assert parts.step_S is None
    assert parts.graph_S is None
    assert batch_facts(fork(), CreditConfig(estimator="hgpo")).parts.episode_S is None


def test_the_strongest_milestone_and_trap_are_named_first(fork: Callable[[], list[Trajectory]]) -> None:
    nodes = by_state(batch_facts(fork(), CreditConfig()))
    assert nodes["bridge"]["name"] == "M1"
    assert nodes["pit"]["name"] == "T1"
    assert nodes["<goal>"]["name"] == "GOAL"


def test_a_move_knows_its_action_its_counts_and_its_rivals(fork: Callable[[], list[Trajectory]]) -> None:
    moves = {(e["source_state"], e["target_state"]): e for e in batch_facts(fork(), CreditConfig()).edges}
    left = moves["fork", "bridge"]
    assert left["actions"] == ["left"]
    assert (left["uses"], left["visits"], left["successes"]) == (2, 2, 2)
    assert (left["moves_from_source"], left["uses_from_source"]) == (2, 4)
    assert left["others_success_rate"] == 0.0
    assert (left["distance"], left["nearest_distance"], left["farthest_distance"]) == (1, 1, None)
    assert left["step_part"] > 0 > moves["fork", "pit"]["step_part"]


def test_a_silent_group_is_told_apart_from_one_with_signal(fork: Callable[[], list[Trajectory]]) -> None:
    assert not batch_facts(fork(), CreditConfig()).is_silent(0)
    lost = [trajectory.model_copy(update={"reward": 0.0}) for trajectory in fork()]
    facts = batch_facts(lost, CreditConfig())
    assert facts.is_silent(0)
    assert facts.credited_steps(0) == 4  # all failed, and yet entering the pit, where rollouts loop, is worse
    assert batch_facts(lost, CreditConfig(estimator="grpo")).credited_steps(0) == 0


def test_the_decisive_moves_are_those_that_won_and_lost(fork: Callable[[], list[Trajectory]]) -> None:
    data = group_data(batch_facts(fork(), CreditConfig()), 0, ATTEMPTS[0])
    assert [data["edges"][edge]["short"] for edge in data["won"]] == ["left"]
    assert [data["edges"][edge]["short"] for edge in data["lost"]] == ["right"]
    assert data["facts"].startswith("2 of 4 rollouts succeeded. 4 states; 100% of the 12 steps")
