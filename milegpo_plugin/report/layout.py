"""Where the states of a group stand: distance to the goal from left to right, dead ends below.

networkx orders the states so that neighbours stand close. One unit is one edge in x and one row in y.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import networkx as nx
import numpy as np

from milegpo_plugin.groups import Floats
from milegpo_plugin.report.facts import Record

CURVE: Final = np.array([0.0, 0.2, 0.4, 0.56, 0.8, 1.0])
"""Positions along an edge at which its curve is sampled; the arrow sits at ``ARROW``."""
ARROW: Final = 3
LOOP_RADIUS: Final = 0.22
BAND_GAP: Final = 1.5


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions of the drawn states of one group.

    ``depth`` is the largest goal distance, so that a state at distance d has x = depth - d; None
    when no state reaches the goal and x counts steps from the start. States below ``band`` have no
    recorded way to the goal; None when there are none.
    """

    position: dict[int, tuple[float, float]]
    depth: int | None
    band: float | None

    @property
    def size(self) -> tuple[float, float]:
        """Extent in x and y."""
        width, height = np.ptp(np.array([*self.position.values()]), axis=0).tolist()
        return width, height


def lay_out(nodes: dict[int, Record], edges: dict[int, Record], starts: Collection[int]) -> Layout:
    """Positions of ``nodes`` (by id), given the edges among them and where rollouts start."""
    graph = nx.DiGraph()
    graph.add_nodes_from(sorted(nodes))
    graph.add_edges_from((edge["source"], edge["target"]) for edge in edges.values())
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    order = _neighbour_order(graph)
    near = {
        node: record["goal_distance"] for node, record in nodes.items() if record["goal_distance"] is not None
    }
    if not near:
        return Layout(_layers(_depths(graph, starts), order), None, None)
    depth = max(near.values())
    position = _layers({node: depth - distance for node, distance in near.items()}, order)
    lost = [node for node in order if node not in near]
    if not lost:
        return Layout(position, depth, None)
    band = min(y for _, y in position.values()) - BAND_GAP / 2
    return Layout(position | _dead_ends(graph, position, lost, depth, band - BAND_GAP / 2), depth, band)


def curves(position: dict[int, tuple[float, float]], edges: dict[int, Record]) -> dict[int, Floats]:
    """The curve of every move between placed states, by id."""
    pairs = {(record["source"], record["target"]) for record in edges.values()}
    return {
        edge: curve(
            position[record["source"]],
            position[record["target"]],
            both_ways=(record["target"], record["source"]) in pairs,
        )
        for edge, record in edges.items()
    }


def curve(start: tuple[float, float], end: tuple[float, float], *, both_ways: bool) -> Floats:
    """Points of a move from ``start`` to ``end``: a quadratic Bézier curve, or a loop. Shape (6, 2)."""
    first, last = np.array(start), np.array(end)
    if start == end:
        angle = np.pi * (2 * CURVE + 0.5)
        loop: Floats = first + LOOP_RADIUS * np.stack([np.cos(angle), np.sin(angle) - 1], axis=1)
        return loop
    along = last - first
    control = (first + last) / 2 + np.array([-along[1], along[0]]) * _bend(along, both_ways=both_ways)
    t = CURVE[:, None]
    points: Floats = (1 - t) ** 2 * first + 2 * t * (1 - t) * control + t**2 * last
    return points


def _bend(along: Floats, *, both_ways: bool) -> float:
    """Straight between neighbours, curved where a straight line would hide another move or a state."""
    passes_states = abs(along[0]) > 1.01 or (abs(along[0]) < 0.01 and abs(along[1]) > 1.01)
    return 0.25 if passes_states else 0.16 if both_ways else 0.0


def _neighbour_order(graph: Any) -> list[int]:
    """All nodes, neighbours close to each other; the same whatever the order of the input."""
    undirected = nx.Graph()
    undirected.add_nodes_from(sorted(graph))
    undirected.add_edges_from(sorted((min(edge), max(edge)) for edge in graph.edges))
    return list(nx.spectral_ordering(undirected, method="tracemin_lu", seed=0))


def _layers(layer: dict[int, int], order: Sequence[int]) -> dict[int, tuple[float, float]]:
    """One column a layer, rows in the given order, columns centred."""
    columns: dict[int, list[int]] = {}
    for node in order:
        if node in layer:
            columns.setdefault(layer[node], []).append(node)
    return {
        node: (float(x), row - (len(column) - 1) / 2)
        for x, column in columns.items()
        for row, node in enumerate(column)
    }


def _depths(graph: Any, starts: Collection[int]) -> dict[int, int]:
    """Steps from the nearest start."""
    return {node: depth for depth, nodes in enumerate(nx.bfs_layers(graph, sorted(starts))) for node in nodes}


def _dead_ends(
    graph: Any, position: dict[int, tuple[float, float]], lost: Sequence[int], depth: int, top: float
) -> dict[int, tuple[float, float]]:
    """Rows under the others: each right of where it is entered from, none on top of another."""
    entries = sorted({source for node in lost for source in graph.predecessors(node) if source in position})
    hops = _depths(graph.subgraph([*lost, *entries]), entries) if entries else {}
    longest = max(hops.values(), default=0) + 1
    wanted = {}
    for node in lost:
        sources = [position[source][0] for source in nx.ancestors(graph, node) if source in position]
        start = min(sources, default=0.0)
        wanted[node] = start + (depth - start) * hops.get(node, 0) / longest
    return _pack(wanted, top)


def _pack(wanted: dict[int, float], top: float) -> dict[int, tuple[float, float]]:
    """Each node at its x, in the first row that has room for it."""
    ends: list[float] = []
    placed = {}
    for node, x in sorted(wanted.items(), key=lambda item: (item[1], item[0])):
        row = next((row for row, end in enumerate(ends) if x - end >= 0.9), len(ends))
        ends[row:] = [x, *ends[row + 1 :]]
        placed[node] = (x, top - row)
    return placed
