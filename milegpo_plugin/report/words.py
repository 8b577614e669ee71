"""Why a step got its credit, and how a state got its score, in words.

Every sentence states the counts it rests on, so that a lucky single rollout reads as one.
"""

from __future__ import annotations

from typing import Final

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.report.facts import Facts, Record

RETURNS: Final = {
    "plangpo": "Steps that start here are compared by what the group's rollouts met after each action",
    "gigpo": "Steps that start here are compared by their discounted return",
    "hgpo": "Steps with the same recent states are compared by their discounted return",
}


def why_move(edge: Record, source: Record, target: Record, config: CreditConfig) -> str:
    """Why the step part of a move is what it is."""
    if edge["step_part"] is None:
        return f"{config.estimator.upper()} looks at the rollout's score only, never at single steps."
    if edge["uses_from_source"] == 1:
        return "No other step of the group starts in this state: nothing to compare it with, no step credit."
    if config.estimator in RETURNS:
        return " ".join([f"{RETURNS[config.estimator]}.", _outcomes(edge)])
    if edge["moves_from_source"] == 1:
        return f"All {edge['uses']} steps that start here lead to the same state: none is better, no step credit."
    sentences = [_comparison(edge), _distance(edge), _outcomes(edge), _potential(source, target)]
    return " ".join(sentence for sentence in sentences if sentence)


def why_episode(facts: Facts, rollout: int) -> str:
    """Why the episode part of a rollout is what it is."""
    batch = facts.credit.batch
    group = batch.group_K == batch.group_K[rollout]
    score, mean = float(batch.score_K[rollout]), float(batch.score_K[group].mean())
    if facts.parts.episode_S is None:
        return ""
    if (batch.score_K[group] == score).all():
        return (
            f"All {group.sum()} rollouts of the group scored {score:g}: the rollout's own score adds nothing."
        )
    return f"The rollout scored {score:g}; the {group.sum()} rollouts of the group average {mean:.2f}."


def score_lines(node: Record, config: CreditConfig) -> list[tuple[str, str]]:
    """How the scores of a state came about: name and derivation of each, in the order of the method."""
    lines: list[tuple[str, str]] = []
    if node["milestone_score"] is not None:
        lines += _milestone_lines(node, config)
    if node["trap_score"] is not None:
        lines += _trap_lines(node, config)
    lines.append(("milestone potential Φ⁺", f"{node['milestone_potential']:.3f}"))
    lines.append(("trap potential Φ⁻", f"{node['trap_potential']:.3f}"))
    return lines


def verdict(node: Record) -> str | None:
    """Whether calibration raised, kept or shrank a candidate; None for other states."""
    score, calibrated = node["milestone_score"], node["calibrated_score"]
    if score is None or calibrated is None:
        return None
    if calibrated > score:
        return "raised"
    return "kept" if calibrated == score else "shrunk" if calibrated > 0 else "shrunk to 0"


def success_words(record: Record) -> str:
    """``3 of 4 rollouts succeeded (75%, interval 30–95%)``."""
    visits, successes = record["visits"], record["successes"]
    interval = f"{_percent(record['success_low'])}–{_percent(record['success_high'])}"
    return (
        f"{successes} of {_rollouts(visits)} succeeded ({_percent(successes / visits)}, interval {interval})"
    )


def distance_words(distance: int | None) -> str:
    """How far it is to the goal on the shortest recorded path."""
    if distance is None:
        return "no recorded way to the goal"
    return "the goal" if distance == 0 else f"{distance} step{'s' if distance > 1 else ''} from the goal"


def _comparison(edge: Record) -> str:
    return (
        f"{edge['uses_from_source']} steps start in this state and make {edge['moves_from_source']} "
        f"different moves; {edge['uses']} made this one."
    )


def _distance(edge: Record) -> str:
    here, nearest, farthest = edge["distance"], edge["nearest_distance"], edge["farthest_distance"]
    leads = "There is no recorded way to the goal after it"
    if here is not None:
        leads = f"It leads to {distance_words(here)}"
    if nearest == farthest:
        return f"{leads}, like every other move from here."
    if here == nearest:
        return f"{leads}; no other move leads nearer."
    return f"{leads}; the best move from here leads to {distance_words(nearest)}."


def _outcomes(edge: Record) -> str:
    text = f"After it, {success_words(edge)}"
    if edge["moves_from_source"] == 1:
        return f"{text}."
    return f"{text}; the other moves average {_percent(edge['others_success_rate'])}."


def _potential(source: Record, target: Record) -> str:
    """Which potential rises along the move, if one does."""
    if target["kind"] == "milestone" and target["weight"] > source["milestone_potential"]:
        return f"It enters milestone {target['name']}."
    if target["kind"] == "trap" and target["trap_potential"] > source["trap_potential"]:
        return f"It enters trap {target['name']}."
    rises = [
        f"towards a {kind} (potential {source[field]:.2f} → {target[field]:.2f})"
        for kind, field in (("milestone", "milestone_potential"), ("trap", "trap_potential"))
        if target[field] > source[field] + 5e-3
    ]
    return f"It moves {' and '.join(rises)}." if rises else ""


def _milestone_lines(node: Record, config: CreditConfig) -> list[tuple[str, str]]:
    rate, base = node["successes"] / node["visits"], node["group_successes"] / node["group_rollouts"]
    lift, coverage = max(rate - base, 0.0), node["successes"] / max(node["group_successes"], 1)
    centrality = node["degree"] / node["largest_degree"]
    weights = (config.success_lift_weight, config.coverage_weight, config.centrality_weight)
    values = (lift, coverage, centrality)
    terms = " + ".join(f"{weight:g}·{value:.2f}" for weight, value in zip(weights, values, strict=True))
    lines = [
        ("success lift ℓ⁺", f"{_percent(rate)} here − {_percent(base)} in the group = {lift:.2f}"),
        ("coverage m", f"{node['successes']} of {node['group_successes']} successes = {coverage:.2f}"),
        ("centrality C", f"degree {node['degree']} of {node['largest_degree']} = {centrality:.2f}"),
        ("milestone score S₀⁺", f"{terms} = {node['milestone_score']:.2f}"),
    ]
    calibration = _calibration_lines(node, config) if config.stage == "pcc" else []
    return [*lines, *calibration, ("weight in the potential", f"{node['weight']:.2f}")]


def _calibration_lines(node: Record, config: CreditConfig) -> list[tuple[str, str]]:
    branch, progress = node["branch_evidence"], node["progress_evidence"]
    evidence = config.branch_weight * branch + config.progress_weight * progress
    factor = 1 + config.calibration_weight * evidence
    shrunk = (verdict(node) or "").startswith("shrunk")
    reason = f"× {config.unsupported_factor:g}: no local evidence" if shrunk else f"× {factor:.2f}"
    return [
        ("branch evidence b", f"{branch:.2f}"),
        ("progress evidence ψ̄", f"{progress:.2f}"),
        ("calibrated score", f"{verdict(node)} ({reason}) to {node['calibrated_score']:.2f}"),
    ]


def _trap_lines(node: Record, config: CreditConfig) -> list[tuple[str, str]]:
    rate, base = node["failures"] / node["visits"], 1 - node["group_successes"] / node["group_rollouts"]
    lift = max(rate - base, 0.0)
    failures = max(node["group_rollouts"] - node["group_successes"], 1)
    share, loops = node["failures"] / failures, node["revisits"] / node["visits"]
    terms = f"{config.failure_lift_weight:g}·{lift:.2f} + {config.loop_weight:g}·{share:.2f}·{loops:.2f}"
    return [
        ("failure lift ℓ⁻", f"{_percent(rate)} here − {_percent(base)} in the group = {lift:.2f}"),
        ("failures that pass f⁻", f"{node['failures']} of {failures} = {share:.2f}"),
        ("loops L", f"{node['revisits']} returns, {_rollouts(node['visits'])} = {loops:.2f}"),
        ("trap score S⁻", f"{terms} = {node['trap_score']:.2f}"),
    ]


def _rollouts(count: int) -> str:
    return f"{count} rollout" if count == 1 else f"{count} rollouts"


def _percent(value: float) -> str:
    return f"{100 * value:.0f}%"
