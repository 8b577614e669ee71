"""The equations of the credit as plain Python: dictionaries, loops, no numpy.

This is the partner of ``credit_speed.py`` and the oracle of the property tests. It is written for
one group at a time, from the equations alone, and shares no code with the package except its nouns.
Every step must carry its ``state``; every rollout must carry a reward.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.types import Trajectory

GOAL = ("goal",)
END = ("end",)
EPSILON = 1e-6
RESIDUE = 1e-12
"""Differences below this are floating-point residue of values that are equal on paper."""

Node = Hashable
Edge = tuple[Node, Node]


@dataclass
class Group:
    """One group: every rollout's nodes, its score, and everything the equations say about them."""

    config: CreditConfig
    paths: list[list[Node]]
    scores: list[float]
    success: list[bool]
    nodes: dict[Node, dict[str, Any]] = field(default_factory=dict)
    edges: dict[Edge, dict[str, Any]] = field(default_factory=dict)
    steps: list[list[dict[str, Any]]] = field(default_factory=list)

    @property
    def success_rate(self) -> float:
        """p_q+."""
        return sum(self.success) / len(self.success)


def plain_credit(trajectories: Sequence[Trajectory], config: CreditConfig) -> dict[str, Group]:
    """The credit of every task, by task id; rollouts keep their input order inside a group."""
    tasks: dict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        tasks[trajectory.task_id].append(trajectory)
    return {task_id: _group_credit(members, config) for task_id, members in tasks.items()}


def _group_credit(members: Sequence[Trajectory], config: CreditConfig) -> Group:
    group = _read_group(members, config)
    _count_visits(group)
    _measure_goal_distance(group)
    _score_milestones(group)
    _score_traps(group)
    _contrast_branches(group)
    _measure_progress(group)
    _calibrate(group)
    _propagate(group)
    _shape(group)
    _advantages(group)
    return group


def _read_group(members: Sequence[Trajectory], config: CreditConfig) -> Group:
    paths: list[list[Node]] = []
    scores, success = [], []
    for member in members:
        assert member.reward is not None
        won = member.success if member.success is not None else member.reward > config.success_threshold
        last: Node = GOAL if won else END if member.final_state is None else member.final_state
        paths.append([step.state for step in member.steps] + [last])
        scores.append(member.reward)
        success.append(won)
    return Group(config, paths, scores, success)


def _count_visits(group: Group) -> None:
    for path, won in zip(group.paths, group.success, strict=True):
        for node in path:
            record = group.nodes.setdefault(
                node, {"visits": 0, "successes": 0, "revisits": 0, "in": 0, "out": 0}
            )
            record["revisits"] += 1
        for node in set(path):
            group.nodes[node]["visits"] += 1
            group.nodes[node]["successes"] += won
            group.nodes[node]["revisits"] -= 1
        for edge in set(pairwise(path)):
            record = group.edges.setdefault(edge, {"visits": 0, "successes": 0})
            record["visits"] += 1
            record["successes"] += won
    for source, target in group.edges:
        group.nodes[source]["out"] += 1
        group.nodes[target]["in"] += 1
    for record in [*group.nodes.values(), *group.edges.values()]:
        record["success_rate"] = record["successes"] / record["visits"]


def _measure_goal_distance(group: Group) -> None:
    hops = _hops_to(GOAL, _sources(group)) if GOAL in group.nodes else {}
    for node, record in group.nodes.items():
        record["goal_distance"] = hops.get(node, math.inf)


def _sources(group: Group) -> dict[Node, list[Node]]:
    """The nodes with an edge to each node."""
    sources = defaultdict(list)
    for source, target in group.edges:
        sources[target].append(source)
    return sources


def _hops_to(goal: Node, sources: dict[Node, list[Node]]) -> dict[Node, int]:
    """Breadth-first search against the edges."""
    hops, queue = {goal: 0}, deque([goal])
    while queue:
        node = queue.popleft()
        for source in sources.get(node, ()):
            if source not in hops:
                hops[source] = hops[node] + 1
                queue.append(source)
    return hops


def _score_milestones(group: Group) -> None:
    config, wins = group.config, max(sum(group.success), 1)
    won = [record for record in group.nodes.values() if record["successes"]]
    largest_degree = max((record["in"] + record["out"] for record in won), default=0)
    for node, record in group.nodes.items():
        record["coverage"] = record["successes"] / wins
        candidate = node != GOAL and record["successes"] > 0 and record["visits"] >= config.min_support
        record["milestone_score"] = None
        if candidate:
            lift = max(record["success_rate"] - group.success_rate, 0.0)
            centrality = (record["in"] + record["out"]) / largest_degree
            record["milestone_score"] = (
                config.success_lift_weight * lift
                + config.coverage_weight * record["coverage"]
                + config.centrality_weight * centrality
            )


def _score_traps(group: Group) -> None:
    config, losses = group.config, max(len(group.success) - sum(group.success), 1)
    for node, record in group.nodes.items():
        record["trap_score"] = None
        if node == END or record["successes"]:
            continue
        lift = max((1 - record["success_rate"]) - (1 - group.success_rate), 0.0)
        share, loops = record["visits"] / losses, record["revisits"] / max(record["visits"], 1)
        score = config.failure_lift_weight * lift + config.loop_weight * share * loops
        seen = record["visits"] >= config.min_trap_visits or record["revisits"] > 0
        if seen and score >= config.min_trap_score - RESIDUE:
            record["trap_score"] = score


def _siblings(group: Group) -> dict[Node, list[Edge]]:
    leaving = defaultdict(list)
    for edge in group.edges:
        leaving[edge[0]].append(edge)
    return leaving


def _mean_of_others(edge: Edge, siblings: Iterable[Edge], value: Callable[[Edge], float]) -> float | None:
    others = [value(other) for other in siblings if other != edge]
    return sum(others) / len(others) if others else None


def _contrast_branches(group: Group) -> None:
    leaving = _siblings(group)
    for edge, record in group.edges.items():
        mean = _mean_of_others(edge, leaving[edge[0]], lambda other: group.edges[other]["success_rate"])
        record["margin"] = 0.0 if mean is None else _snap(record["success_rate"] - mean)
    largest = max(abs(record["margin"]) for record in group.edges.values())
    for record in group.edges.values():
        record["branch_contrast"] = record["margin"] / largest if largest else 0.0
    for record in group.nodes.values():
        record["branch_evidence"] = 0.0
    for (_, target), record in group.edges.items():
        node = group.nodes[target]
        node["branch_evidence"] = max(node["branch_evidence"], record["branch_contrast"])


def _measure_progress(group: Group) -> None:
    leaving = _siblings(group)
    for record in group.nodes.values():
        record["progress_evidence"] = 0.0
    for edge, record in group.edges.items():
        record["progress"] = _edge_progress(group, edge, leaving[edge[0]])
        if record["successes"]:
            node = group.nodes[edge[1]]
            node["progress_evidence"] = max(node["progress_evidence"], record["progress"])
    largest = max(record["progress_evidence"] for record in group.nodes.values())
    for record in group.nodes.values():
        record["progress_evidence"] = record["progress_evidence"] / largest if largest else 0.0


def _edge_progress(group: Group, edge: Edge, siblings: Iterable[Edge]) -> float:
    config, (source, target) = group.config, edge
    near, far = group.nodes[target]["goal_distance"], group.nodes[source]["goal_distance"]
    closer = far - near if math.isfinite(near) and math.isfinite(far) else 0.0
    rate = group.nodes[target]["success_rate"]
    mean = _mean_of_others(edge, siblings, lambda other: 1 - group.edges[other]["success_rate"])
    if mean is None:
        failure = max((1 - rate) - (1 - group.success_rate), 0.0)
    else:
        failure = max((1 - group.edges[edge]["success_rate"]) - mean, 0.0)
    return _snap(
        config.progress_distance_weight * closer
        + config.progress_success_weight * (rate - group.success_rate)
        - config.progress_failure_weight * failure
    )


def _calibrate(group: Group) -> None:
    config = group.config
    for record in group.nodes.values():
        record["calibrated_score"] = None
        if record["milestone_score"] is None:
            continue
        branch, progress = record["branch_evidence"], record["progress_evidence"]
        kept = (
            progress > 0
            or record["coverage"] >= config.support_threshold
            or (config.keep_branch and branch > 0)
        )
        evidence = config.branch_weight * branch + config.progress_weight * progress
        factor = 1 + config.calibration_weight * evidence if kept else config.unsupported_factor
        record["calibrated_score"] = record["milestone_score"] * factor


def _propagate(group: Group) -> None:
    stage = group.config.stage
    positive = "milestone_score" if stage in ("md", "rcs") else "calibrated_score"
    for name, score in (("milestone_potential", positive), ("trap_potential", "trap_score")):
        weights = {node: record[score] for node, record in group.nodes.items() if record[score] is not None}
        largest = max(weights.values(), default=0.0)
        scaled = {
            node: 1.0 if stage == "md" else value / largest if largest else 0.0
            for node, value in weights.items()
        }
        potential = _potential(group, scaled)
        for node, record in group.nodes.items():
            record[name] = potential[node]


def _potential(group: Group, weights: dict[Node, float]) -> dict[Node, float]:
    """Largest weight(v) * omega^d(s, v), one search for every v."""
    potential, sources = dict.fromkeys(group.nodes, 0.0), _sources(group)
    for candidate, weight in weights.items():
        for node, hops in _hops_to(candidate, sources).items():
            potential[node] = max(potential[node], weight * group.config.potential_decay**hops)
    return potential


def _shape(group: Group) -> None:
    config = group.config
    plus, minus = config.milestone_weight, config.trap_weight
    for path in group.paths:
        rollout = []
        for source, target in pairwise(path):
            here, there = group.nodes[source], group.nodes[target]
            up = plus * (
                config.potential_discount * there["milestone_potential"] - here["milestone_potential"]
            )
            down = minus * (config.potential_discount * there["trap_potential"] - here["trap_potential"])
            shaped = config.stage != "graph"
            step = {
                "state": source,
                "graph_return": _graph_return(there["goal_distance"], config),
                "delta_plus": max(up, 0.0) if shaped else 0.0,
                "delta_minus": max(down, 0.0) if shaped else 0.0,
            }
            bonus = config.return_scale * config.shaping_weight * (step["delta_plus"] - step["delta_minus"])
            step["shaped_return"] = step["graph_return"] + bonus
            rollout.append(step)
        group.steps.append(rollout)


def _graph_return(distance: float, config: CreditConfig) -> float:
    return 0.0 if math.isinf(distance) else config.return_scale * config.graph_discount**distance


def _advantages(group: Group) -> None:
    config = group.config
    episode = normalize(group.scores, [0] * len(group.scores), config.norm)
    states = [step["state"] for rollout in group.steps for step in rollout]
    flat = [step for rollout in group.steps for step in rollout]
    graph = normalize([step["graph_return"] for step in flat], states, config.norm)
    shaped = normalize([step["shaped_return"] for step in flat], states, config.norm)
    gigpo = normalize(_returns_to_go(group), states, config.norm)
    owner = [index for index, rollout in enumerate(group.steps) for _ in rollout]
    for index, step in enumerate(flat):
        own = episode[owner[index]]
        step["graph_advantage"], step["shaped_advantage"] = graph[index], shaped[index]
        step["episode_advantage"] = step["grpo"] = own
        mixed = graph[index] + config.mix_weight * (shaped[index] - graph[index])
        step["advantage"] = config.step_weight * mixed + config.episode_weight * own
        step["gigpo"] = config.step_weight * gigpo[index] + config.episode_weight * own


def _returns_to_go(group: Group) -> list[float]:
    returns: list[float] = []
    for score, rollout in zip(group.scores, group.steps, strict=True):
        length = len(rollout)
        returns += [group.config.gigpo_discount ** (length - 1 - t) * score for t in range(length)]
    return returns


def normalize(values: Sequence[float], keys: Sequence[Hashable], norm: str) -> list[float]:
    """Centre (and scale by the sample std) the values of each key; a key of one gives 0."""
    members = defaultdict(list)
    for index, key in enumerate(keys):
        members[key].append(index)
    result = [0.0] * len(values)
    for indices in members.values():
        own = [values[index] for index in indices]
        if len(own) == 1 or max(own) - min(own) <= RESIDUE * max(map(abs, own)):
            continue
        mean = math.fsum(own) / len(own)
        variance = math.fsum((value - mean) ** 2 for value in own) / (len(own) - 1)
        scale = math.sqrt(variance) + EPSILON if norm == "mean_std" else 1.0
        for index in indices:
            result[index] = (values[index] - mean) / scale
    return result


def _snap(value: float) -> float:
    return 0.0 if abs(value) < RESIDUE else value
