"""The figures at the head of a training run's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from milegpo_plugin.report.progress import decimal, percent
from milegpo_plugin.report.summary import Card, Reason
from milegpo_plugin.report.text import clean


def run_cards(metrics: Sequence[Mapping[str, Any]]) -> list[Card]:
    """Iterations, success, validation at its first, best and last, and time."""
    last = metrics[-1] if metrics else {}
    trained = _known(metrics, "success")
    return [
        Card("iterations", str(last.get("iteration", 0)), "finished so far"),
        *_validation_cards(_known(metrics, "validation/success")),
        Card("training success", percent(_value(trained, -1)), f"started at {percent(_value(trained, 0))}"),
        Card("mean return", decimal(_value(_known(metrics, "return"), -1)), "rollouts of the last iteration"),
        Card(
            "coverage",
            percent(_value(_known(metrics, "credit/coverage"), -1)),
            "steps in shared states, last iteration",
        ),
        Card("time", duration(last.get("seconds/total")), "since the start of the run"),
    ]


def run_skips(metrics: Sequence[Mapping[str, Any]]) -> list[Reason]:
    """Each reason for which a rollout, step or row was left out, over all iterations."""
    counts: dict[str, int] = {}
    first: dict[str, int] = {}
    for record in metrics:
        for reason, count in (record.get("skipped") or {}).items():
            counts[reason] = counts.get(reason, 0) + int(count)
            first.setdefault(reason, record["iteration"])
    return [
        Reason("rollouts, steps or rows", counts[reason], clean(reason, 300), f"iteration {first[reason]}")
        for reason in sorted(counts)
    ]


def duration(seconds: float | None) -> str:
    """Seconds in the unit a person would use; unknown as a dash."""
    if seconds is None:
        return "–"
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _validation_cards(known: Sequence[tuple[int, float]]) -> list[Card]:
    if not known:
        return []
    best = max(known, key=lambda item: (item[1], item[0]))
    return [
        Card("validation success", percent(known[-1][1]), f"started at {percent(known[0][1])}"),
        Card("best validation", percent(best[1]), f"at iteration {best[0]}"),
    ]


def _known(metrics: Sequence[Mapping[str, Any]], name: str) -> list[tuple[int, float]]:
    """Iteration and value of every record that has the metric."""
    return [(record["iteration"], float(record[name])) for record in metrics if record.get(name) is not None]


def _value(known: Sequence[tuple[int, float]], place: int) -> float | None:
    return known[place][1] if known else None
