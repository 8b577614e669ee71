"""What the page's script gets about one group: states, moves, rollouts step by step, and the figure.

Texts are cleaned and bounded; they travel as JSON and reach the page as text nodes only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from milegpo_plugin.groups import Floats
from milegpo_plugin.report.facts import Facts, Record
from milegpo_plugin.report.graph_figure import KINDS, Drawing, graph_figure, node_label
from milegpo_plugin.report.layout import curves, lay_out
from milegpo_plugin.report.sampling import Limits, sample_rollouts
from milegpo_plugin.report.text import action_text, clean, observation_text, one_line
from milegpo_plugin.report.words import distance_words, score_lines, success_words, why_episode, why_move
from milegpo_plugin.types import Step

DECISIVE: Final = 5
DIGITS: Final = 4


@dataclass
class Texts:
    """Every distinct text once; the others refer to its place."""

    limit: int
    places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str) -> int:
        """Index of the text among ``shown``."""
        return self.places.setdefault(text, len(self.places))

    def shown(self) -> list[str]:
        """The texts, cleaned and bounded, by index."""
        return [clean(text, self.limit) for text in self.places]


def group_data(facts: Facts, group: int, limits: Limits) -> Record:
    """Everything the page shows of one group, as JSON values."""
    texts = Texts(limits.text)
    drawing = draw_group(facts, group, limits)
    nodes, edges = group_nodes(facts, group), group_edges(facts, group)
    rollouts = sample_rollouts(facts.credit, group, limits)
    return {
        "label": facts.label,
        "task": clean(facts.credit.batch.task_ids[group], 300),
        "facts": group_words(facts, group),
        "notes": _notes(facts, group, rollouts, drawing, limits),
        "rollouts": [_rollout_data(facts, k, texts, edges, limits) for k in rollouts],
        "nodes": [_node_data(facts, node, drawing, texts) for node in nodes],
        "edges": [_edge_data(facts, edge, drawing, limits) for edge in edges],
        "won": _decisive(facts, edges, sign=1),
        "lost": _decisive(facts, edges, sign=-1),
        "figure": graph_figure(drawing, facts.credit.config),
        "texts": texts.shown(),
    }


def draw_group(facts: Facts, group: int, limits: Limits) -> Drawing:
    """Place the states of a group; of a large one the milestones, traps and most visited states."""
    ids, edges = group_nodes(facts, group), group_edges(facts, group)
    kept = sorted(sorted(ids, key=lambda node: _drawing_rank(facts, node))[: limits.states])
    nodes = {node: facts.nodes[node] for node in kept}
    drawn = {
        edge: facts.edges[edge]
        for edge in edges
        if facts.edges[edge]["source"] in nodes and facts.edges[edge]["target"] in nodes
    }
    batch = facts.credit.batch
    starts = {
        int(batch.source_S[batch.offset_K[k]]) for k in np.flatnonzero(batch.group_K == group)
    } & nodes.keys()
    layout = lay_out(nodes, drawn, starts)
    return Drawing(
        nodes, drawn, curves(layout.position, drawn), frozenset(starts), layout, ids.start, edges.start
    )


def group_nodes(facts: Facts, group: int) -> range:
    """Ids of the states of a group."""
    nodes = facts.credit.graph.nodes
    return range(int(nodes.start_Y[group]), int(nodes.start_Y[group] + nodes.size_Y[group]))


def group_edges(facts: Facts, group: int) -> range:
    """Ids of the moves of a group."""
    edges = facts.credit.graph.edges
    return range(int(edges.start_Y[group]), int(edges.start_Y[group] + edges.size_Y[group]))


def group_words(facts: Facts, group: int) -> str:
    """One sentence on the outcomes of a group and on what its credit rests on."""
    graph, batch = facts.credit.graph, facts.credit.batch
    rollouts, successes = int(graph.rollouts_G[group]), int(graph.successes_G[group])
    steps = batch.group_K[batch.rollout_S] == group
    shared = float((graph.visits_N[batch.source_S[steps]] > 1).mean())
    states = sum(facts.nodes[node]["kind"] not in ("goal", "end") for node in group_nodes(facts, group))
    alike = " All scored alike, so their outcomes give no signal." if facts.is_silent(group) else ""
    return (
        f"{successes} of {rollouts} rollouts succeeded.{alike} {states} states; {100 * shared:.0f}% of the "
        f"{int(steps.sum())} steps start in a state that several rollouts visit; {facts.credited_steps(group)} steps got step credit."
    )


def _drawing_rank(facts: Facts, node: int) -> tuple[int, int]:
    """Goal and end first, then milestones and traps by strength, then the most visited."""
    record = facts.nodes[node]
    if record["kind"] in ("goal", "end"):
        return 0, node
    return (1, int(record["name"][1:])) if record["name"] else (2, -record["visits"])


def _notes(facts: Facts, group: int, rollouts: Sequence[int], drawing: Drawing, limits: Limits) -> list[str]:
    total, states = int(facts.credit.graph.rollouts_G[group]), len(group_nodes(facts, group))
    longest = max(len(facts.steps_of(k)) for k in rollouts)
    notes = []
    if len(rollouts) < total:
        notes.append(f"{len(rollouts)} of {total} rollouts are shown; all of them count in every figure.")
    if len(drawing.nodes) < states:
        notes.append(
            f"{len(drawing.nodes)} of {states} states are drawn: milestones, traps and the most visited."
        )
    if longest > limits.steps:
        notes.append(
            f"Only the first {limits.steps} steps of a rollout are shown; the longest has {longest}."
        )
    return notes


def _rollout_data(facts: Facts, rollout: int, texts: Texts, edges: range, limits: Limits) -> Record:
    batch = facts.credit.batch
    steps = facts.steps_of(rollout)[: limits.steps]
    recorded = [facts.step(rollout, index) for index in steps]
    other = None if facts.other is None else facts.other.advantages(int(batch.input_K[rollout]))
    parts = facts.parts
    return {
        "id": clean(facts.trajectory(rollout).rollout_id, 120),
        "won": bool(batch.success_K[rollout]),
        "score": float(batch.score_K[rollout]),
        "why": why_episode(facts, rollout),
        "edge": [int(facts.credit.graph.edge_S[index]) - edges.start for index in steps],
        "action": [texts.place(action_text(step.action)) for step in recorded],
        "said": [_said(step, texts) for step in recorded],
        "seen": [texts.place(observation_text(step.observation) or step.state or "") for step in recorded],
        "flags": [sorted(step.flags) for step in recorded],
        "graph": _column(parts.graph_S, steps),
        "milestone": _column(parts.milestone_S, steps),
        "step": _column(parts.step_S, steps),
        "episode": _column(parts.episode_S, steps),
        "advantage": _column(parts.advantage_S, steps),
        "other": _column(other, range(len(steps))),
    }


def _said(step: Step, texts: Texts) -> int | None:
    """The text beside tool calls; the action itself when there are none."""
    return texts.place(step.action.text) if step.action.text and step.action.tool_calls else None


def _column(value_S: Floats | None, steps: Iterable[int]) -> list[float] | None:
    return None if value_S is None else [round(float(value_S[index]), DIGITS) + 0.0 for index in steps]


def _node_data(facts: Facts, node: int, drawing: Drawing, texts: Texts) -> Record:
    record = facts.nodes[node]
    placed = drawing.layout.position.get(node)
    return {
        "name": node_label(record, drawing.starts, node),
        "kind": record["kind"],
        "title": KINDS[record["kind"]],
        "text": texts.place(record["state"]),
        "visits": record["visits"],
        "successes": record["successes"],
        "score": record["calibrated_score"] if record["kind"] == "milestone" else record["trap_score"],
        "facts": f"{success_words(record)}; {distance_words(record['goal_distance'])}.",
        "lines": score_lines(record, facts.credit.config),
        "xy": None if placed is None else [round(value, 3) for value in placed],
    }


def _edge_data(facts: Facts, edge: int, drawing: Drawing, limits: Limits) -> Record:
    record = facts.edges[edge]
    source, target = facts.nodes[record["source"]], facts.nodes[record["target"]]
    points: Any = drawing.curves.get(edge)
    return {
        "source": record["source"] - drawing.first_node,
        "target": record["target"] - drawing.first_node,
        "actions": [clean(action, limits.text) for action in record["actions"][:3]],
        "short": one_line(record["actions"][0], 60),
        "visits": record["visits"],
        "successes": record["successes"],
        "step": None if record["step_part"] is None else round(record["step_part"], DIGITS) + 0.0,
        "others": round(record["others_success_rate"], DIGITS) if record["moves_from_source"] > 1 else None,
        "facts": success_words(record),
        "why": why_move(record, source, target, facts.credit.config),
        "xy": None if points is None else points.T.round(3).tolist(),
    }


def _decisive(facts: Facts, edges: range, *, sign: int) -> list[int]:
    """Moves that gained (``sign`` 1) or lost most over all rollouts that made them, the largest step first."""
    step = {edge: sign * (facts.edges[edge]["step_part"] or 0.0) for edge in edges}
    found = [edge for edge in edges if step[edge] > 1e-9]
    found.sort(key=lambda edge: (-step[edge] * facts.edges[edge]["visits"], edge))
    return [edge - edges.start for edge in sorted(found[:DECISIVE], key=lambda edge: (-step[edge], edge))]
