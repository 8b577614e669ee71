"""The state graphs of a batch as one block-diagonal graph, and shortest paths on it.

One node per state and group, one edge per distinct (source, target); nodes and edges of a group are
contiguous, edges are sorted by source. No edge joins two groups, so one search serves them all.

Axes: ``_G`` groups, ``_K`` rollouts, ``_S`` steps, ``_P`` visits (steps and ends), ``_N`` nodes,
``_E`` edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from milegpo_plugin.credit.segments import Segments
from milegpo_plugin.groups import Batch, Bools, Floats, Ints

UNREACHABLE: Final = -1
"""Goal distance of a node from which no recorded path leads to GOAL."""


@dataclass(frozen=True, slots=True)
class StateGraph:
    """Counts, rates and goal distances of every node and edge (method.md §1)."""

    rollouts_G: Ints  # (G,)
    successes_G: Ints  # (G,)
    success_rate_G: Floats  # (G,) p_q+
    group_N: Ints  # (N,)
    goal_N: Bools  # (N,)
    end_N: Bools  # (N,)
    visits_N: Ints  # (N,) |T(v)|: rollouts that visit the node
    successes_N: Ints  # (N,) |T+(v)|
    revisits_N: Ints  # (N,) visits after the first, summed over rollouts
    success_rate_N: Floats  # (N,) p+(v)
    goal_distance_N: Ints  # (N,) edges to GOAL, or UNREACHABLE
    source_E: Ints  # (E,) sorted
    target_E: Ints  # (E,)
    visits_E: Ints  # (E,) |T(e)|: rollouts that use the edge
    successes_E: Ints  # (E,) |T+(e)|
    success_rate_E: Floats  # (E,) p+(e)
    edge_S: Ints  # (S,) edge of each step
    nodes: Segments  # nodes by group
    edges: Segments  # edges by group
    branches: Segments  # edges by source
    arrivals: Segments  # edges by target
    backward: csr_array  # (N, N) the edges reversed, each of length 1


def build_state_graph(batch: Batch) -> StateGraph:
    """Count the visits of a batch and measure the distance of every node to its goal."""
    size, (node_P, rollout_P) = len(batch.group_N), _visits(batch)
    stays = Segments.of(node_P)
    moves = Segments.of(batch.source_S * size + batch.target_S)
    source_E, target_E = np.divmod(moves.key_Y, size)
    arrivals = Segments.of(target_E)
    backward = _reverse(source_E, arrivals, size)
    visits_N, successes_N = stays.count_owners(rollout_P, batch.success_K)
    visits_E, successes_E = moves.count_owners(batch.rollout_S, batch.success_K)
    rollouts_G = np.bincount(batch.group_K)
    successes_G = np.bincount(batch.group_K[batch.success_K], minlength=len(rollouts_G))
    return StateGraph(
        rollouts_G=rollouts_G,
        successes_G=successes_G,
        success_rate_G=successes_G / rollouts_G,
        group_N=batch.group_N,
        goal_N=batch.goal_N,
        end_N=batch.end_N,
        visits_N=visits_N,
        successes_N=successes_N,
        revisits_N=stays.size_Y - visits_N,
        success_rate_N=successes_N / visits_N,
        goal_distance_N=_goal_distance(backward, batch.goal_N),
        source_E=source_E,
        target_E=target_E,
        visits_E=visits_E,
        successes_E=successes_E,
        success_rate_E=successes_E / visits_E,
        edge_S=moves.segment_X,
        nodes=Segments.of_ascending(batch.group_N),
        edges=Segments.of_ascending(batch.group_N[source_E]),
        branches=Segments.of_ascending(source_E),
        arrivals=arrivals,
        backward=backward,
    )


def _visits(batch: Batch) -> tuple[Ints, Ints]:
    """Every visit of a node, ends included, and the rollout that makes it, in order. Shapes (P,)."""
    end_K = batch.offset_K[1:]
    node_P = np.insert(batch.source_S, end_K, batch.target_S[end_K - 1])
    return node_P, np.insert(batch.rollout_S, end_K, np.arange(len(end_K)))


def _reverse(source_E: Ints, arrivals: Segments, size: int) -> csr_array:
    """The graph with every edge turned round: row v lists the nodes with an edge to v."""
    indptr = np.zeros(size + 1, dtype=np.int32)
    indptr[arrivals.key_Y + 1] = arrivals.size_Y
    indices = source_E[arrivals.order_X].astype(np.int32)
    return csr_array((np.ones(len(indices)), indices, np.cumsum(indptr, dtype=np.int32)), shape=(size, size))


def _goal_distance(backward: csr_array, goal_N: Bools) -> Ints:
    """d(v, GOAL): one search from all goals against the edges. Shape (N,)."""
    goals = np.flatnonzero(goal_N)
    if not len(goals):
        return np.full(len(goal_N), UNREACHABLE)
    hops = dijkstra(backward, unweighted=True, indices=goals, min_only=True)
    return np.where(np.isfinite(hops), hops, UNREACHABLE).astype(np.int64)


def potential(graph: StateGraph, weight_N: Floats, decay: float) -> Floats:
    """Largest weight(v) · decay^d(s, v), over the nodes v, for every node s. Shape (N,).

    A product of powers is a sum of logarithms, so the maximum is a shortest path from one more
    node that reaches each v at cost log weight(v) / log decay. The search only finds the best v and
    the number of edges to it; the value is computed from those, free of logarithms.
    """
    hub, edges = len(weight_N), graph.backward
    starts = np.flatnonzero(weight_N > 0).astype(np.int32)
    cost = np.concatenate([edges.data, 1 + np.log(weight_N[starts]) / np.log(decay)])
    heads = np.concatenate([edges.indices, starts])
    indptr = np.append(edges.indptr, np.int32(len(cost)))
    backward = csr_array((cost, heads, indptr), shape=(hub + 1, hub + 1))
    _, parent = dijkstra(backward, indices=hub, return_predecessors=True)
    origin, hops = _climb(parent[:hub], hub)
    return np.where(origin >= 0, weight_N[origin] * decay ** hops.astype(np.float64), 0.0)


def _climb(parent_N: Any, hub: int) -> tuple[Ints, Ints]:
    """Root of each node in the search tree below ``hub``, and edges to it, by doubling.

    Nodes outside the tree get the root -1.
    """
    here = np.arange(hub)
    root = np.where(parent_N == hub, here, np.where(parent_N < 0, here, parent_N)).astype(np.int64)
    hops = (root != here).astype(np.int64)
    while True:
        above = root[root]
        if np.array_equal(above, root):
            return np.where(parent_N[root] == hub, root, -1), hops
        hops += hops[root]
        root = above
