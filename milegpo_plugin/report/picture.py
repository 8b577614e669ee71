"""A still picture of one group's state graph, for papers: networkx draws it with matplotlib."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Final

import networkx as nx

from milegpo_plugin.errors import CreditError, MissingDependencyError
from milegpo_plugin.report import palette
from milegpo_plugin.report.facts import Facts, Record
from milegpo_plugin.report.graph_figure import Drawing, node_label
from milegpo_plugin.report.group_data import draw_group
from milegpo_plugin.report.sampling import ATTEMPTS
from milegpo_plugin.report.text import one_line

MARKERS: Final = {"goal": "*", "end": "X", "milestone": "o", "trap": "D", "state": "o"}
CAPTIONS: Final = 5
CAPTION_WIDTH: Final = 110
DOTS_PER_INCH: Final = 200


def write_png(facts: Facts, output: Path, *, task: str | None = None) -> list[Path]:
    """Draw the state graph of ``task``, or of the first task with both outcomes.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        CreditError: the batch has no such task.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            "png needs matplotlib: pip install 'milegpo-plugin[report]', or save the graph from the page"
        ) from error
    group = choose_group(facts, task)
    drawing = draw_group(facts, group, ATTEMPTS[0])
    captions = _captions(drawing)
    figure = Figure(figsize=_inches(drawing, len(captions)), layout="constrained")
    _draw(figure, drawing, captions)
    figure.suptitle(one_line(facts.credit.batch.task_ids[group], 100), fontsize=10, parse_math=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(output, dpi=DOTS_PER_INCH)
    return [output]


def choose_group(facts: Facts, task: str | None) -> int:
    """The group of ``task``; without one the first that has successes and failures, else the first."""
    tasks = facts.credit.batch.task_ids
    if task is not None and task not in tasks:
        known = ", ".join(repr(one_line(name, 40)) for name in tasks[:5])
        raise CreditError(f"task must be one of the batch's tasks, such as {known}; got {task!r}")
    if task is not None:
        return tasks.index(task)
    rates = facts.credit.graph.success_rate_G.tolist()
    return next((group for group, rate in enumerate(rates) if 0 < rate < 1), 0)


def _inches(drawing: Drawing, captions: int) -> tuple[float, float]:
    """Width and height that give every state and every caption room."""
    width, height = drawing.layout.size
    return max(7.0, 0.85 * (width + 2)), max(2.4, 0.75 * (height + 2)) + 0.16 * captions


def _draw(figure: Any, drawing: Drawing, captions: list[str]) -> None:
    axes = figure.subplots()
    graph = nx.DiGraph()
    graph.add_nodes_from(drawing.nodes)
    graph.add_edges_from((record["source"], record["target"]) for record in drawing.edges.values())
    _draw_edges(axes, graph, drawing)
    points = _draw_nodes(axes, graph, drawing)
    figure.colorbar(points, ax=axes, shrink=0.7, ticks=[-1, 0, 1], pad=0.01).set_ticklabels(
        ["trap", "", "milestone"]
    )
    _label(axes, drawing)
    unit = "steps to the goal"
    if drawing.layout.depth is None:
        unit = "steps from the start; no rollout reached the goal"
    axes.set_xlabel("\n".join([unit, *captions]), fontsize=7, parse_math=False)


def _draw_edges(axes: Any, graph: Any, drawing: Drawing) -> None:
    records = list(drawing.edges.values())
    rates = [record["successes"] / record["visits"] for record in records]
    nx.draw_networkx_edges(
        graph,
        drawing.layout.position,
        ax=axes,
        edgelist=[(record["source"], record["target"]) for record in records],
        width=[0.6 * palette.traffic_width(record["visits"]) for record in records],
        edge_color=[palette.success_colour(rate) for rate in rates],
        style=["-" if rate else ":" for rate in rates],
        arrowsize=8,
        node_size=160,
        connectionstyle="arc3,rad=0.14",
    )


def _draw_nodes(axes: Any, graph: Any, drawing: Drawing) -> Any:
    """All states, one call a marker; returns the last points for the colour bar."""
    from matplotlib.colors import LinearSegmentedColormap

    scale = LinearSegmentedColormap.from_list("trap to milestone", list(palette.SCORE_SCALE))
    strongest = max((record["trap_score"] or 0.0 for record in drawing.nodes.values()), default=0.0)
    points = None
    for kind, marker in MARKERS.items():
        members = {node: record for node, record in drawing.nodes.items() if record["kind"] == kind}
        if members:
            points = nx.draw_networkx_nodes(
                graph,
                drawing.layout.position,
                ax=axes,
                nodelist=list(members),
                node_shape=marker,
                node_size=[_area(record) for record in members.values()],
                node_color=[palette.signed_score(record, strongest) for record in members.values()],
                cmap=scale,
                vmin=-1,
                vmax=1,
                edgecolors="#5a626c",
                linewidths=0.7,
            )
    return points


def _area(record: Record) -> float:
    scale = 2.0 if record["kind"] == "goal" else 1.0
    return scale * float(50 + 170 * record["visits"] / record["group_rollouts"])


def _label(axes: Any, drawing: Drawing) -> None:
    layout = drawing.layout
    names = {node: node_label(record, drawing.starts, node) for node, record in drawing.nodes.items()}
    below = {node: (x, y - 0.36) for node, (x, y) in layout.position.items()}
    for node, (x, y) in below.items():
        axes.text(x, y, names[node], ha="center", va="center", fontsize=7, parse_math=False)
    ticks = range(round(max(x for x, _ in layout.position.values())) + 1)
    axes.set_xticks(
        list(ticks), [str(tick if layout.depth is None else layout.depth - tick) for tick in ticks]
    )
    axes.tick_params(bottom=True, labelbottom=True, left=False, labelleft=False, labelsize=7)
    if layout.band is not None:
        axes.axhline(layout.band, color=palette.NEITHER, linestyle="--", linewidth=0.7)
        axes.text(
            0,
            layout.band,
            " no recorded way to the goal",
            fontsize=6,
            va="top",
            transform=axes.get_yaxis_transform(),
        )
    heights = [y for _, y in layout.position.values()]
    axes.set_ylim(min(heights) - 0.7, max(heights) + 0.8)
    axes.spines[["top", "left", "right"]].set_visible(False)


def _captions(drawing: Drawing) -> list[str]:
    """The text behind the strongest names."""
    named = [record for record in drawing.nodes.values() if record["kind"] in ("milestone", "trap")]
    kept = [record for record in named if int(record["name"][1:]) <= CAPTIONS]
    kept.sort(key=lambda record: (record["name"][0], int(record["name"][1:])))
    return [
        one_line(
            f"{record['name']} ({record['successes']}/{record['visits']} succeeded): {record['state']}",
            CAPTION_WIDTH,
        )
        for record in kept
    ]
