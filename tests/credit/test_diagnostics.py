"""The figures of method.md §8, against counting by hand and by brute force."""

from __future__ import annotations

import json
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit, diagnose
from milegpo_plugin.errors import CreditError


@pytest.fixture
def group(rollout):
    """A shared start, two ways to win, one way to lose, one detour met once."""
    return [
        rollout(["start", "left"], 1.0, rollout_id="r0"),
        rollout(["start", "right"], 1.0, rollout_id="r1"),
        rollout(["start", "left"], 0.0, final_state="pit", rollout_id="r2"),
        rollout(["start", "detour"], 0.0, rollout_id="r3"),
    ]


def test_coverage_counts_the_transitions_from_shared_states(group):
    # start four times and left twice, of eight transitions
    assert diagnose(group).coverage == 6 / 8


def test_ambiguity_counts_the_edge_pairs_that_tie_under_distance(group):
    # from start: left and right are both one edge from the goal, detour is not; from left: goal or pit
    ambiguity = diagnose(group).ambiguity
    assert (ambiguity.part, ambiguity.whole) == (1, 3 + 1)


def test_tie_correction_counts_pairs_with_opposite_outcomes(group):
    # from start, left and right tie, and r2, which lost, stands against r0 and r1, which won; r0 took
    # the same edge as r2. Start has the largest score: no potential rises from it until calibration
    # drops it, as no edge makes progress into it; then right has the larger potential.
    ties = diagnose(group).tie_correction
    assert {stage: (share.part, share.whole) for stage, share in ties.items()} == {
        "md": (0, 2),
        "rcs": (0, 2),
        "pcc": (1, 2),
    }


def test_candidates_are_sorted_by_what_supports_them(group):
    found = diagnose(group)
    # start has no edge into it; left and right are reached by edges that make progress
    assert (found.support.local, found.support.coverage_only, found.support.weak) == (2, 0, 1)
    # left succeeds in 1 of 2, as the mean of its siblings right (1) and detour (0): no contrast
    assert (found.evidence.progress, found.evidence.branch, found.evidence.both) == (2, 1, 1)
    loose = diagnose(group, CreditConfig.preset("webshop"))
    assert (loose.support.coverage_only, loose.support.weak) == (1, 0)


def test_the_diagnostics_are_plain_json_with_seconds_for_every_part(group):
    values = json.loads(json.dumps(diagnose(group).to_dict()))
    assert values["ambiguity"] == {"part": 1, "whole": 4, "share": 0.25}
    assert set(values["tie_correction"]) == {"md", "rcs", "pcc"}
    parts = {"states", "groups", "graph", "intervals", "milestones", "calibration", "md", "rcs", "pcc"}
    assert set(values["seconds"]) == parts
    assert all(seconds >= 0 for seconds in values["seconds"].values())


def test_a_share_of_nothing_is_unknown(rollout):
    assert diagnose([rollout(["a"], 1.0)]).to_dict()["ambiguity"]["share"] is None


def test_diagnosing_without_outcomes_is_refused(rollout):
    with pytest.raises(CreditError, match="no outcomes"):
        diagnose([rollout(["a"])])


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_tie_correction_is_what_comparing_all_pairs_gives(data, batches, settings_of_credit):
    # distances beyond the tie tolerance of each other: one hop more is a fifth
    batch = data.draw(batches())
    config = data.draw(settings_of_credit(graph_discount=0.9))
    credit = assign_credit(batch, config)
    source, won = credit.batch.source_S, credit.batch.success_K[credit.batch.rollout_S]
    tied = corrected = 0
    for one, other in combinations(range(len(source)), 2):
        if source[one] != source[other] or won[one] == won[other]:
            continue
        if abs(credit.graph_advantage_S[one] - credit.graph_advantage_S[other]) > 1e-6:
            continue
        winner, loser = (one, other) if won[one] else (other, one)
        tied += 1
        corrected += credit.shaped_advantage_S[winner] - credit.shaped_advantage_S[loser] > 1e-6
    metrics = credit.metrics()
    assert metrics["tied_pairs"] == tied
    assert metrics.get("tie_correction") == (corrected / tied if tied else None)


def test_groups_that_end_all_alike_are_counted_and_those_that_step_credit_rescues(rollout):
    won = [rollout(["a", "b"], 1.0, task_id="won", rollout_id="r0")]
    won += [rollout(["a", "a", "b"], 1.0, task_id="won", rollout_id="r1")]
    stuck = [rollout(["a"], 0.0, task_id="stuck", rollout_id=f"r{number}") for number in range(2)]
    mixed = [rollout(["a"], float(number), task_id="mixed", rollout_id=f"r{number}") for number in range(2)]
    metrics = assign_credit(won + stuck + mixed).metrics()
    assert metrics["groups"] == 3
    assert metrics["groups_without_signal"] == 2
    assert metrics["groups_rescued"] == 1


def test_grpo_reports_no_step_credit(group):
    metrics = assign_credit(group, CreditConfig(estimator="grpo")).metrics()
    assert metrics["step_credit"] == 0.0
    assert "tied_pairs" not in metrics
