"""The state graph of one group as a plotly figure.

The figure is a plain dictionary, one of the forms that plotly takes: a page holds a hundred of them,
and building them from graph objects takes fifty times as long.
"""

from __future__ import annotations

import html
import itertools
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.groups import Floats
from milegpo_plugin.report import palette
from milegpo_plugin.report.facts import Record
from milegpo_plugin.report.layout import ARROW, CURVE, Layout
from milegpo_plugin.report.text import clean, one_line
from milegpo_plugin.report.words import distance_words, score_lines, success_words

Figure: TypeAlias = dict[str, Any]

SYMBOLS: Final = {"goal": "star", "end": "x", "milestone": "circle", "trap": "diamond", "state": "circle"}
KINDS: Final = {
    "goal": "the goal",
    "end": "end of failed rollouts, last observation not recorded",
    "milestone": "milestone",
    "trap": "trap",
    "state": "state",
}
HOVER_TEXT: Final = 240
HOVER_WIDTH: Final = 64
ROW_HEIGHT: Final = 58


@dataclass(frozen=True, slots=True)
class Drawing:
    """What of one group's graph is drawn, by id: states, moves, their curves, and where rollouts start.

    ``first_node`` and ``first_edge`` are the smallest ids of the group: the page counts from there.
    """

    nodes: dict[int, Record]
    edges: dict[int, Record]
    curves: dict[int, Floats]  # (6, 2) each
    starts: frozenset[int]
    layout: Layout
    first_node: int
    first_edge: int


def graph_figure(drawing: Drawing, config: CreditConfig) -> Figure:
    """The figure; ``customdata`` of a point is ``["node" or "edge", place in the group]``."""
    return {
        "data": [*_edge_traces(drawing), _edge_targets(drawing), _node_trace(drawing, config)],
        "layout": _figure_layout(drawing.layout),
    }


def node_label(record: Record, starts: frozenset[int], node: int) -> str:
    """Short name of a state on the graph."""
    return " · ".join(filter(None, ["START" if node in starts else "", record["name"]]))


def _edge_traces(drawing: Drawing) -> list[Figure]:
    """One trace a line style: width is traffic, colour the success rate, dots where nobody succeeded."""
    styles: dict[tuple[float, str, str], list[int]] = {}
    for edge, record in drawing.edges.items():
        rate = record["successes"] / record["visits"]
        style = (
            palette.traffic_width(record["visits"]),
            palette.success_colour(rate),
            "solid" if rate else "dot",
        )
        styles.setdefault(style, []).append(edge)
    return [_edge_trace(drawing, style, edges) for style, edges in sorted(styles.items())]


def _edge_trace(drawing: Drawing, style: tuple[float, str, str], edges: Sequence[int]) -> Figure:
    """Lines with an arrow each; an empty point between two moves lifts the pen."""
    width, colour, dash = style
    points = [[*drawing.curves[edge].tolist(), [None, None]] for edge in edges]
    x, y = zip(*itertools.chain.from_iterable(points), strict=True)
    arrows = [7 + width if place == ARROW else 0 for place in range(len(CURVE) + 1)]
    return {
        "type": "scatter",
        "x": x,
        "y": y,
        "mode": "lines+markers",
        "line": {"width": width, "color": colour, "dash": dash, "shape": "spline"},
        "marker": {
            "size": arrows * len(edges),
            "symbol": "arrow",
            "angleref": "previous",
            "opacity": 1,
            "line": {"width": 0},
        },
        "hoverinfo": "skip",
    }


def _edge_targets(drawing: Drawing) -> Figure:
    """What the mouse finds of the moves: an unseen point on each arrow."""
    points = [drawing.curves[edge][ARROW].tolist() for edge in drawing.edges]
    return {
        "type": "scatter",
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "mode": "markers",
        "marker": {"size": 14, "opacity": 0},
        "hovertext": [_edge_hover(record) for record in drawing.edges.values()],
        "hoverinfo": "text",
        "customdata": [["edge", edge - drawing.first_edge] for edge in drawing.edges],
    }


def _node_trace(drawing: Drawing, config: CreditConfig) -> Figure:
    records, place = drawing.nodes, drawing.layout.position
    strongest = max((record["trap_score"] or 0.0 for record in records.values()), default=0.0)
    rollouts = max(record["group_rollouts"] for record in records.values())
    return {
        "type": "scatter",
        "x": [place[node][0] for node in records],
        "y": [place[node][1] for node in records],
        "mode": "markers+text",
        "text": [node_label(record, drawing.starts, node) for node, record in records.items()],
        "textposition": "top center",
        "marker": {
            "symbol": [SYMBOLS[record["kind"]] for record in records.values()],
            "size": [_size(record, rollouts) for record in records.values()],
            "color": [palette.signed_score(record, strongest) for record in records.values()],
            "colorscale": [list(stop) for stop in palette.SCORE_SCALE],
            "cmin": -1,
            "cmax": 1,
            "opacity": 1,
            "line": {"width": 1.2, "color": "rgba(90,98,108,0.9)"},
        },
        "hovertext": [_node_hover(record, config) for record in records.values()],
        "hoverinfo": "text",
        "customdata": [["node", node - drawing.first_node] for node in records],
    }


def _size(record: Record, rollouts: int) -> float:
    """Marker area grows with the share of rollouts that visit the state."""
    return 11 + 19 * float((record["visits"] / rollouts) ** 0.5) + (6 if record["kind"] == "goal" else 0)


def _node_hover(record: Record, config: CreditConfig) -> str:
    title = " · ".join(filter(None, [record["name"], KINDS[record["kind"]]]))
    lines = [] if record["kind"] in ("goal", "end") else _wrap(clean(record["state"], HOVER_TEXT))
    derived = [f"{name}: {how}" for name, how in score_lines(record, config)]
    facts = [success_words(record), distance_words(record["goal_distance"]), *derived]
    return "<br>".join([f"<b>{html.escape(title)}</b>", *lines, "", *map(html.escape, facts)])


def _edge_hover(edge: Record) -> str:
    first, *others = [one_line(action, HOVER_WIDTH) for action in edge["actions"][:3]]
    credit = [] if edge["step_part"] is None else [f"step credit {edge['step_part']:+.2f}"]
    return "<br>".join(
        [f"<b>{html.escape(first)}</b>", *map(html.escape, [*others, success_words(edge), *credit])]
    )


def _wrap(text: str) -> list[str]:
    return [html.escape(line) for line in textwrap.wrap(text, HOVER_WIDTH)[:6]]


def _figure_layout(layout: Layout) -> dict[str, Any]:
    rows = max(layout.size[1], 1.0) + 1.6
    hidden = {"visible": False, "fixedrange": False}
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "height": round(min(max(rows * ROW_HEIGHT + 70, 260), 760)),
        "margin": {"l": 12, "r": 12, "t": 8, "b": 46},
        "showlegend": False,
        "hovermode": "closest",
        "hoverdistance": 14,
        "dragmode": "pan",
        "xaxis": _x_axis(layout),
        "yaxis": hidden | {"range": _y_range(layout)},
        **_band(layout),
    }


def _y_range(layout: Layout) -> list[float]:
    heights = [y for _, y in layout.position.values()]
    return [min(heights) - 0.7, max(heights) + 0.9]


def _x_axis(layout: Layout) -> dict[str, Any]:
    last = round(max(x for x, _ in layout.position.values()))
    every = max(1, round(last / 14))
    ticks = list(range(last, -1, -every)) if layout.depth is not None else list(range(0, last + 1, every))
    title = "steps from the start: no rollout of this group reached the goal"
    if layout.depth is not None:
        title = "steps to the goal on the shortest recorded path"
    return {
        "tickvals": ticks,
        "ticktext": [str(layout.depth - tick if layout.depth is not None else tick) for tick in ticks],
        "title": {"text": title},
        "range": [-0.6, last + 0.6],
        "zeroline": False,
        "showgrid": False,
    }


def _band(layout: Layout) -> dict[str, Any]:
    """A line above the states from which no recorded path leads to the goal."""
    if layout.band is None:
        return {}
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": layout.band, "y1": layout.band}
    note = {"text": "below: no recorded way to the goal", "xref": "paper", "x": 0, "y": layout.band}
    style = {"showarrow": False, "xanchor": "left", "yanchor": "top", "font": {"size": 11}}
    return {
        "shapes": [line | {"line": {"color": palette.NEITHER, "width": 1, "dash": "dash"}, "layer": "below"}],
        "annotations": [note | style],
    }
