"""Figures of a training run over its iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import plotly.graph_objects as go

from milegpo_plugin.report import palette
from milegpo_plugin.report.document import TrainingFigure

Metrics = Sequence[Mapping[str, Any]]

SYMBOLS: Final = ("circle", "diamond", "square", "triangle-up", "cross", "x")
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "solid")
PARTS_OF_OTHERS: Final = ("seconds/total", "seconds/agent")
"""The whole run, and the agents' share of collecting: neither is a part of an iteration by itself."""


class Chart(NamedTuple):
    """Curves over iterations: metric and name of each. ``over`` divides them by another metric."""

    title: str
    note: str
    curves: tuple[tuple[str, str], ...]
    share: bool = False
    over: str | None = None


CHARTS: Final = (
    Chart(
        "Success",
        "share of rollouts that succeed; validation is on tasks that are never trained on",
        (("validation/success", "validation"), ("success", "training")),
        share=True,
    ),
    Chart(
        "Return",
        "mean reward of a rollout",
        (("validation/return", "validation"), ("return", "training")),
    ),
    Chart(
        "What the credit rests on",
        "coverage: steps that start in a state several rollouts visit; step credit: steps better or worse than "
        "others from the same state",
        (("credit/coverage", "coverage"), ("credit/step_credit", "step credit")),
        share=True,
    ),
    Chart(
        "Groups without signal",
        "share of groups whose rollouts all end alike, and of those that got step credit all the same",
        (("credit/groups_without_signal", "without signal"), ("credit/groups_rescued", "rescued")),
        share=True,
        over="credit/groups",
    ),
    Chart(
        "Milestones and traps",
        "in all groups of an iteration",
        (("credit/milestones", "milestones"), ("credit/traps", "traps")),
    ),
    Chart(
        "Length of a rollout",
        "model calls a rollout",
        (("validation/steps", "validation"), ("steps", "training")),
    ),
)


def run_figures(metrics: Metrics) -> list[TrainingFigure]:
    """Every figure for which the run has values: learning curve, credit, time split."""
    figures = [figure for chart in CHARTS if (figure := _chart(metrics, chart)) is not None]
    split = _time_split(metrics)
    return [*figures, split] if split is not None else figures


def _chart(metrics: Metrics, chart: Chart) -> TrainingFigure | None:
    figure = go.Figure()
    for place, (name, label) in enumerate(chart.curves):
        points = _points(metrics, name, chart.over)
        if points:
            figure.add_trace(_curve(points, label, place))
    if not figure.data:
        return None
    figure.update_layout(_layout(share=chart.share))
    return TrainingFigure(chart.title, chart.note, figure)


def _points(metrics: Metrics, name: str, over: str | None) -> list[tuple[int, float]]:
    """Iteration and value where the metric is known."""
    points = []
    for record in metrics:
        value, whole = record.get(name), record.get(over, 0) if over else 1
        if value is not None and whole:
            points.append((record["iteration"], value / whole))
    return points


def _curve(points: Sequence[tuple[int, float]], label: str, place: int) -> go.Scatter:
    colour = palette.LINES[place]
    x, y = zip(*points, strict=True)
    return go.Scatter(
        x=x,
        y=y,
        name=label,
        mode="lines+markers",
        line={"color": colour, "width": 2, "dash": DASHES[place]},
        marker={"color": colour, "size": 7, "symbol": SYMBOLS[place]},
    )


def _time_split(metrics: Metrics) -> TrainingFigure | None:
    names = sorted({name for record in metrics for name in record if name.startswith("seconds/")})
    figure = go.Figure()
    for place, name in enumerate(name for name in names if name not in PARTS_OF_OTHERS):
        points = _points(metrics, name, None)
        if points:
            x, y = zip(*points, strict=True)
            colour = palette.LINES[place % len(palette.LINES)]
            figure.add_trace(go.Bar(x=x, y=y, name=name.removeprefix("seconds/"), marker={"color": colour}))
    if not figure.data:
        return None
    figure.update_layout(_layout(share=False), barmode="stack", yaxis_title_text="seconds")
    return TrainingFigure("Time", "seconds of each iteration by what they were spent on", figure)


def _layout(*, share: bool) -> dict[str, Any]:
    y_axis: dict[str, Any] = {"rangemode": "tozero"}
    if share:
        y_axis = {"range": [-0.03, 1.03], "tickformat": ".0%"}
    return {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "height": 250,
        "margin": {"l": 52, "r": 12, "t": 30, "b": 42},
        "legend": {"orientation": "h", "y": 1.14, "x": 0},
        "showlegend": True,
        "hovermode": "x unified",
        "xaxis": {"title": {"text": "iteration"}, "zeroline": False, "tickformat": "d"},
        "yaxis": y_axis,
    }
