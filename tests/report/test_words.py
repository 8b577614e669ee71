from __future__ import annotations

from collections.abc import Callable

import pytest

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.report.facts import Facts
from milegpo_plugin.report.page import batch_facts
from milegpo_plugin.report.words import (
    distance_words,
    score_lines,
    success_words,
    verdict,
    why_episode,
    why_move,
)
from milegpo_plugin.types import Trajectory


def why(facts: Facts, source: str, target: str) -> str:
    edge = next(e for e in facts.edges if (e["source_state"], e["target_state"]) == (source, target))
    return why_move(edge, facts.nodes[edge["source"]], facts.nodes[edge["target"]], facts.credit.config)


def test_a_winning_move_names_its_rivals_its_distance_its_counts_and_its_milestone(
    fork: Callable[[], list[Trajectory]],
) -> None:
    assert why(batch_facts(fork(), CreditConfig()), "fork", "bridge") == (
        "4 steps start in this state and make 2 different moves; 2 made this one. "
        "It leads to 1 step from the goal; no other move leads nearer. "
        "After it, 2 of 2 rollouts succeeded (100%, interval 34%–100%); the other moves average 0%. "
        "It enters milestone M1."
    )


def test_a_losing_move_says_that_no_way_leads_back_and_which_trap_it_enters(
    fork: Callable[[], list[Trajectory]],
) -> None:
    text = why(batch_facts(fork(), CreditConfig()), "fork", "pit")
    assert "There is no recorded way to the goal after it; the best move from here leads to 1 step" in text
    assert "0 of 2 rollouts succeeded" in text
    assert text.endswith("It enters trap T1.")


def test_a_move_without_rivals_says_that_there_is_nothing_to_compare(
    fork: Callable[[], list[Trajectory]],
) -> None:
    assert "lead to the same state" in why(batch_facts(fork(), CreditConfig()), "start", "fork")
    alone = [*fork()[:1], fork()[2].model_copy(update={"task_id": "other"})]
    assert "No other step of the group starts in this state" in why(
        batch_facts(alone, CreditConfig()), "fork", "bridge"
    )


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [("grpo", "GRPO looks at the rollout's score only"), ("gigpo", "compared by their discounted return")],
)
def test_other_estimators_explain_themselves(
    fork: Callable[[], list[Trajectory]], estimator: str, expected: str
) -> None:
    assert expected in why(batch_facts(fork(), CreditConfig.load({"estimator": estimator})), "fork", "bridge")


def test_the_rollouts_own_score_is_compared_with_its_group(fork: Callable[[], list[Trajectory]]) -> None:
    facts = batch_facts(fork(), CreditConfig())
    assert why_episode(facts, 0) == "The rollout scored 1; the 4 rollouts of the group average 0.50."
    alike = batch_facts(fork()[:2], CreditConfig())
    assert why_episode(alike, 0).startswith("All 2 rollouts of the group scored 1")
    assert why_episode(batch_facts(fork(), CreditConfig(estimator="hgpo")), 0) == ""


def test_the_score_of_a_milestone_is_derived_line_by_line(fork: Callable[[], list[Trajectory]]) -> None:
    facts = batch_facts(fork(), CreditConfig())
    bridge = next(node for node in facts.nodes if node["state"] == "bridge")
    lines = dict(score_lines(bridge, facts.credit.config))
    assert lines["success lift ℓ⁺"] == "100% here − 50% in the group = 0.50"
    assert lines["coverage m"] == "2 of 2 successes = 1.00"
    assert lines["centrality C"] == "degree 2 of 3 = 0.67"
    assert lines["milestone score S₀⁺"] == "1·0.50 + 1·1.00 + 0.25·0.67 = 1.67"
    assert lines["calibrated score"].startswith("raised (× 3.00)")
    assert lines["weight in the potential"] == "1.00"


def test_the_score_of_a_trap_is_derived_line_by_line(fork: Callable[[], list[Trajectory]]) -> None:
    facts = batch_facts(fork(), CreditConfig())
    pit = next(node for node in facts.nodes if node["state"] == "pit")
    lines = dict(score_lines(pit, facts.credit.config))
    assert lines["failure lift ℓ⁻"] == "100% here − 50% in the group = 0.50"
    assert lines["loops L"] == "2 returns, 2 rollouts = 1.00"
    assert lines["trap score S⁻"] == "1·0.50 + 0.25·1.00·1.00 = 0.75"


@pytest.mark.parametrize("stage", ["pcc", "rcs", "md", "graph"])
@pytest.mark.parametrize("preset", ["alfworld", "webshop"])
def test_every_derivation_ends_in_the_value_that_was_used(
    play_houses: Callable[..., list[Trajectory]], preset: str, stage: str
) -> None:
    facts = batch_facts(play_houses(2), CreditConfig.preset(preset, stage=stage))
    for node in facts.nodes:
        lines = dict(score_lines(node, facts.credit.config))
        for name, field in (("milestone score S₀⁺", "milestone_score"), ("trap score S⁻", "trap_score")):
            if node[field] is not None:
                terms, _, total = lines[name].rpartition(" = ")
                value = sum(_product(term) for term in terms.split(" + "))
                assert value == pytest.approx(float(total), abs=0.02)
                assert float(total) == pytest.approx(node[field], abs=0.0051)


def _product(term: str) -> float:
    value = 1.0
    for factor in term.split("·"):
        value *= float(factor)
    return value


def test_calibration_is_told_as_raised_kept_or_shrunk() -> None:
    def node(score: float | None, calibrated: float | None) -> dict[str, float | None]:
        return {"milestone_score": score, "calibrated_score": calibrated}

    assert verdict(node(1.0, 2.0)) == "raised"
    assert verdict(node(1.0, 1.0)) == "kept"
    assert verdict(node(1.0, 0.5)) == "shrunk"
    assert verdict(node(1.0, 0.0)) == "shrunk to 0"
    assert verdict(node(None, None)) is None


def test_a_move_seen_once_reads_as_one_rollout() -> None:
    record = {"visits": 1, "successes": 1, "success_low": 0.207, "success_high": 1.0}
    assert success_words(record) == "1 of 1 rollout succeeded (100%, interval 21%–100%)"


@pytest.mark.parametrize(
    ("distance", "words"),
    [(None, "no recorded way to the goal"), (0, "the goal"), (1, "1 step from the goal")],
)
def test_distances_read_naturally(distance: int | None, words: str) -> None:
    assert distance_words(distance) == words
