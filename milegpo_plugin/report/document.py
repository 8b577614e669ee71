"""One HTML file that needs no network, bounded in size whatever it shows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.errors import InputNotFoundError
from milegpo_plugin.report.assets import render
from milegpo_plugin.report.compare import Comparison, compare_credit, estimator_name
from milegpo_plugin.report.facts import Facts, Record
from milegpo_plugin.report.group_data import group_data
from milegpo_plugin.report.sampling import ATTEMPTS, Limits, sample_groups
from milegpo_plugin.report.summary import Card, Reason
from milegpo_plugin.report.text import action_text, clean, one_line

MAX_BYTES: Final = 5_000_000
STRONGEST: Final = 10
COLOUR_QUANTILE: Final = 0.95
"""Advantages at least this large get the deepest colour."""


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """What was written. ``notes`` are worth telling the user."""

    path: Path
    bytes: int
    rollouts: int
    rollouts_shown: int
    groups: int
    groups_shown: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrainingFigure:
    """A figure of a run, with what it shows in words."""

    title: str
    note: str
    figure: go.Figure


@dataclass(frozen=True, slots=True)
class Content:
    """What a page shows. Several batches are iterations of one run."""

    title: str
    subtitle: str
    cards: Sequence[Card]
    batches: Sequence[Facts]
    config: CreditConfig
    skipped: Sequence[Reason] = ()
    flags: Sequence[Reason] = ()
    figures: Sequence[TrainingFigure] = ()
    notes: Sequence[str] = ()
    refresh: int | None = None  # seconds after which the page loads itself again


def write_page(content: Content, output: Path) -> ReportSummary:
    """Write the page whole or not at all, so that a browser never loads half of it.

    Raises:
        InputNotFoundError: the folder of ``output`` does not exist.
    """
    if not output.parent.is_dir():
        raise InputNotFoundError(f"{output.parent}: no such folder; create it, or choose another -o")
    html, summary = render_page(content)
    draft = output.with_name(f".{output.name}.draft")
    draft.write_bytes(html)
    os.replace(draft, output)
    return replace(summary, path=output)


def render_page(content: Content) -> tuple[bytes, ReportSummary]:
    """The page, showing as much as fits into ``MAX_BYTES``."""
    for limits in ATTEMPTS:
        shown = [(facts, sample_groups(facts.credit, _share(limits, content))) for facts in content.batches]
        html, summary = _render(content, shown, limits)
        if len(html) <= MAX_BYTES:
            break
    return html, summary


def _share(limits: Limits, content: Content) -> Limits:
    return replace(limits, rollouts=max(1, limits.rollouts // len(content.batches)))


def _render(
    content: Content, shown: Sequence[tuple[Facts, list[int]]], limits: Limits
) -> tuple[bytes, ReportSummary]:
    groups = [group_data(facts, group, limits) for facts, picked in shown for group in picked]
    summary = _summary(content, groups)
    comparison = compare_credit(*shown[0]) if shown else None
    data = {
        "groups": groups,
        "figures": [figure.figure.to_plotly_json() for figure in content.figures],
        "first": _most_telling(groups),
        "names": comparison.names if comparison else (estimator_name(content.config), ""),
        "scales": [_colour_scale(content), comparison.scale if comparison else 1.0],
    }
    context = {
        "title": content.title,
        "subtitle": content.subtitle,
        "cards": content.cards,
        "notes": [*content.notes, *summary.notes],
        "figures": content.figures,
        "groups": list(_menu(shown)),
        "comparison": comparison,
        "disagreements": list(_disagreements(shown, comparison, groups)),
        "strongest": [(kind, _strongest(content, kind)) for kind in ("milestone", "trap")],
        "skipped": content.skipped,
        "flags": content.flags,
        "settings": _settings(content.config),
        "refresh": content.refresh,
    }
    html = render(context, data).encode()
    return html, replace(summary, bytes=len(html))


def _summary(content: Content, groups: Sequence[Record]) -> ReportSummary:
    total = sum(len(facts.credit.graph.rollouts_G) for facts in content.batches)
    rollouts = sum(len(facts.credit.batch.input_K) for facts in content.batches)
    shown_rollouts = sum(len(group["rollouts"]) for group in groups)
    notes: tuple[str, ...] = ()
    if len(groups) < total or shown_rollouts < rollouts:
        notes = (
            f"A sample is shown: {len(groups)} of {total} groups, {shown_rollouts} of {rollouts} rollouts, "
            "spread evenly over the tasks. The figures count all of them.",
        )
    return ReportSummary(Path(), 0, rollouts, shown_rollouts, total, len(groups), notes)


def _most_telling(groups: Sequence[Record]) -> int:
    """The group to open first: of the last batch, with mixed outcomes, then most step credit moved."""

    def interest(place: int) -> tuple[bool, bool, float]:
        group = groups[place]
        won = {rollout["won"] for rollout in group["rollouts"]}
        moved = sum(abs(group["edges"][edge]["step"] or 0.0) for edge in [*group["won"], *group["lost"]])
        return group["label"] == groups[-1]["label"], len(won) > 1, moved

    return max(range(len(groups)), key=lambda place: (*interest(place), -place), default=0)


def _colour_scale(content: Content) -> float:
    values = [np.abs(facts.credit.advantage_S) for facts in content.batches]
    return float(np.quantile(np.concatenate(values), COLOUR_QUANTILE)) or 1.0 if values else 1.0


def _menu(shown: Sequence[tuple[Facts, list[int]]]) -> Iterator[Record]:
    for facts, picked in shown:
        graph = facts.credit.graph
        for group in picked:
            rollouts, successes = int(graph.rollouts_G[group]), int(graph.successes_G[group])
            yield {
                "label": facts.label,
                "task": one_line(facts.credit.batch.task_ids[group], 90),
                "rollouts": rollouts,
                "successes": successes,
                "silent": facts.is_silent(group),
                "rescued": facts.is_silent(group) and facts.credited_steps(group) > 0,
            }


def _disagreements(
    shown: Sequence[tuple[Facts, list[int]]], comparison: Comparison | None, groups: Sequence[Record]
) -> Iterator[Record]:
    """Rows of the comparison table; ``place`` is where the page finds the step, if it shows it."""
    if comparison is None:
        return
    facts, picked = shown[0]
    for item in comparison.most:
        place = picked.index(item.group)
        trajectory = facts.trajectory(item.rollout)
        rows = [rollout["id"] for rollout in groups[place]["rollouts"]]
        name = clean(trajectory.rollout_id, 120)
        row = rows.index(name) if name in rows else ""
        yield {
            "task": one_line(trajectory.task_id, 60),
            "rollout": one_line(name, 40),
            "step": item.step,
            "action": one_line(action_text(trajectory.steps[item.step].action), 80),
            "first": item.first,
            "second": item.second,
            "place": f"{place} {row} {item.step}".strip(),
        }


def _strongest(content: Content, kind: str) -> list[Record]:
    """The strongest milestones or traps of a single batch."""
    if len(content.batches) != 1:
        return []
    score = "calibrated_score" if kind == "milestone" else "trap_score"
    found = [node for node in content.batches[0].nodes if node["kind"] == kind and node[score]]
    found.sort(key=lambda node: (-node[score], -node["visits"], node["state"]))
    return [
        {
            "state": one_line(node["state"], 140),
            "score": node[score],
            "visits": node["visits"],
            "successes": node["successes"],
            "task": one_line(node["task_id"], 40),
        }
        for node in found[:STRONGEST]
    ]


def _settings(config: CreditConfig) -> list[tuple[str, Any]]:
    """Every setting that differs from the default, the estimator always."""
    changed = config.model_dump(mode="json", exclude_defaults=True, exclude={"estimator", "states"})
    states = config.states.model_dump(mode="json", exclude_defaults=True)
    return [
        ("estimator", config.estimator),
        *changed.items(),
        *((f"states.{name}", value) for name, value in states.items()),
    ]
