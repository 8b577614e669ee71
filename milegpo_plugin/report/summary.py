"""The figures at the head of the page, and what was left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from milegpo_plugin.flags import FLAGS
from milegpo_plugin.report.facts import Facts
from milegpo_plugin.report.progress import percent
from milegpo_plugin.report.text import clean, one_line
from milegpo_plugin.types import Skipped


class Card(NamedTuple):
    """One figure with its name and an explanation."""

    name: str
    value: str
    note: str


class Reason(NamedTuple):
    """Why something was left out or looks odd, how often, and an example or a cure."""

    what: str
    times: int
    reason: str
    example: str


def batch_cards(facts: Facts, skipped: int) -> list[Card]:
    """Rollouts, success, coverage, milestones, traps, groups without signal, what was left out."""
    figures = facts.credit.metrics()
    rollouts, groups = int(figures["rollouts"]), int(figures["groups"])
    silent, rescued = int(figures["groups_without_signal"]), int(figures["groups_rescued"])
    left_out = skipped + int(figures["rollouts_skipped"])
    return [
        Card(
            "rollouts",
            f"{rollouts:,}",
            f"{groups:,} task{'s' if groups > 1 else ''}, {int(figures['steps']):,} steps",
        ),
        Card(
            "success",
            percent(figures["success_rate"]),
            f"{int(facts.credit.batch.success_K.sum())} of {rollouts}",
        ),
        Card("coverage", percent(figures["coverage"]), "steps that start in a state several rollouts visit"),
        Card(
            "step credit",
            percent(figures["step_credit"]),
            "steps better or worse than others from the same state",
        ),
        Card(
            "milestones",
            f"{int(figures['milestones']):,}",
            "states that successes pass and that do local work",
        ),
        Card("traps", f"{int(figures['traps']):,}", "states that only failures visit"),
        Card(
            "groups without signal",
            f"{silent} of {groups}",
            f"all ended alike; {rescued} of them got step credit all the same",
        ),
        Card("left out", f"{left_out:,}", "reasons are listed below" if left_out else "nothing was skipped"),
    ]


def skip_reasons(skipped: Iterable[Skipped]) -> list[Reason]:
    """Each reason once, with its count and a first example."""
    found: dict[tuple[str, str], list[str]] = {}
    for item in skipped:
        found.setdefault((item.kind, item.reason), []).append(item.id)
    return [
        Reason(kind, len(ids), clean(reason, 300), one_line(ids[0], 80))
        for (kind, reason), ids in sorted(found.items())
    ]


def flag_reasons(facts: Facts) -> list[Reason]:
    """Every flag of rollouts and steps with its meaning and its cure."""
    counts = Counter(flag for t in facts.trajectories for flag in t.flags)
    counts.update(flag for t in facts.trajectories for step in t.steps for flag in step.flags)
    return [
        Reason(one_line(flag, 60), count, FLAGS[flag].meaning if flag in FLAGS else "", _cure(flag))
        for flag, count in sorted(counts.items())
    ]


def _cure(flag: str) -> str:
    return (FLAGS[flag].cure or "") if flag in FLAGS else ""
