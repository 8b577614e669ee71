"""What the page, the exports and the pictures show: the facts of states, moves and steps as records.

Axes: ``_G`` groups, ``_K`` rollouts, ``_S`` steps, ``_N`` nodes, ``_E`` edges.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from milegpo_plugin.credit import Credit
from milegpo_plugin.credit.segments import ratio
from milegpo_plugin.groups import Floats, Ints
from milegpo_plugin.report.text import action_text
from milegpo_plugin.types import Step, Trajectory

Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a step's advantage is made of; the known parts sum to it. None: the estimator has no such part.

    ``graph`` is distance to the goal, ``milestone`` what milestones and traps change about it,
    ``step`` both of them or the estimator's own step part, ``episode`` the rollout's score.
    """

    graph_S: Floats | None
    milestone_S: Floats | None
    step_S: Floats | None
    episode_S: Floats | None
    advantage_S: Floats


@dataclass(frozen=True, slots=True)
class Facts:
    """One batch with its credit, ready to be shown. ``label`` names the batch among several."""

    label: str
    trajectories: Sequence[Trajectory]
    credit: Credit
    parts: Parts
    other: Credit | None  # another estimator on the same trajectories
    nodes: list[Record]  # (N,)
    edges: list[Record]  # (E,)

    def is_silent(self, group: int) -> bool:
        """Whether the rollouts of a group all score alike, so that outcomes give no signal."""
        batch = self.credit.batch
        return bool(np.ptp(batch.score_K[batch.group_K == group]) == 0)

    def credited_steps(self, group: int) -> int:
        """Steps of a group whose advantage has a step part."""
        batch = self.credit.batch
        if self.parts.step_S is None:
            return 0
        return int(np.count_nonzero(self.parts.step_S[batch.group_K[batch.rollout_S] == group]))

    def steps_of(self, rollout: int) -> range:
        """Indices among ``_S`` of the steps of a rollout."""
        return range(*self.credit.batch.offset_K[rollout : rollout + 2].tolist())

    def step(self, rollout: int, index: int) -> Step:
        """The recorded step behind index ``index`` of ``_S``."""
        start = int(self.credit.batch.offset_K[rollout])
        return self.trajectory(rollout).steps[index - start]

    def trajectory(self, rollout: int) -> Trajectory:
        """The trajectory of a rollout in use."""
        return self.trajectories[int(self.credit.batch.input_K[rollout])]


def collect_facts(
    trajectories: Sequence[Trajectory], credit: Credit, *, other: Credit | None = None, label: str = ""
) -> Facts:
    """Name the milestones and traps of a batch and gather the facts of its states and moves."""
    parts = split_advantages(credit)
    nodes = _node_facts(credit)
    names = [node["name"] for node in nodes]
    edges = _edge_facts(trajectories, credit, parts, names)
    return Facts(label, trajectories, credit, parts, other, nodes, edges)


def split_advantages(credit: Credit) -> Parts:
    """The parts of every step's advantage, weights included."""
    weight = credit.config.step_weight
    step = None if credit.step_advantage_S is None else weight * credit.step_advantage_S
    graph = None if credit.graph_advantage_S is None else weight * credit.graph_advantage_S
    has_episode = credit.episode_advantage_S is not None
    return Parts(
        graph_S=graph,
        milestone_S=None if graph is None or step is None else step - graph,
        step_S=step,
        episode_S=credit.advantage_S - (0.0 if step is None else step) if has_episode else None,
        advantage_S=credit.advantage_S,
    )


def _node_facts(credit: Credit) -> list[Record]:
    """The lines of ``nodes.jsonl`` with a short name and with what their scores are made of."""
    graph, records = credit.graph, list(credit.node_records())
    degree_N, largest_N = _degrees(credit)
    names = _names(credit, records)
    for node, record in enumerate(records):
        group = graph.group_N[node]
        successes, rollouts = int(graph.successes_G[group]), int(graph.rollouts_G[group])
        record |= {
            "name": names[node],
            "group_rollouts": rollouts,
            "group_successes": successes,
            "revisits": int(graph.revisits_N[node]),
            "degree": int(degree_N[node]),
            "largest_degree": int(largest_N[node]),
            "weight": float(credit.milestone_weight_N[node]),
        }
    return records


def _degrees(credit: Credit) -> tuple[Ints, Ints]:
    """Edges in and out of each node, and the most among its group's nodes that successes visit."""
    graph, size = credit.graph, len(credit.graph.group_N)
    degree = np.bincount(graph.source_E, minlength=size) + np.bincount(graph.target_E, minlength=size)
    visited = np.where(graph.successes_N > 0, degree, 0).astype(np.float64)
    return degree, graph.nodes.largest(visited)[graph.group_N].astype(np.int64)


def _names(credit: Credit, records: list[Record]) -> list[str]:
    """``M1`` is the group's strongest milestone, ``T1`` its strongest trap; others have no name."""
    strength = {"milestone": credit.milestone_weight_N, "trap": credit.trap_score_N}
    names = [{"goal": "GOAL", "end": "END"}.get(record["kind"], "") for record in records]
    for kind, value_N in strength.items():
        found = [node for node, record in enumerate(records) if record["kind"] == kind]
        rank: Counter[int] = Counter()
        for node in sorted(found, key=lambda node: (-value_N[node], -records[node]["visits"], node)):
            group = int(credit.graph.group_N[node])
            rank[group] += 1
            names[node] = f"{kind[0].upper()}{rank[group]}"
    return names


def _edge_facts(
    trajectories: Sequence[Trajectory], credit: Credit, parts: Parts, names: list[str]
) -> list[Record]:
    graph, batch = credit.graph, credit.batch
    uses_E = np.bincount(graph.edge_S, minlength=len(graph.source_E))
    actions = _actions_of_edges(trajectories, credit)
    means = {
        name: _mean_of_edges(credit, getattr(parts, f"{name}_S")) for name in ("graph", "milestone", "step")
    }
    branches = _branch_facts(credit, uses_E)
    return [
        {
            "task_id": batch.task_ids[graph.group_N[source]],
            "source": int(source),
            "target": int(target),
            "source_state": batch.state_N[source],
            "target_state": batch.state_N[target],
            "target_name": names[target],
            "actions": actions[edge],
            "uses": int(uses_E[edge]),
            "visits": int(graph.visits_E[edge]),
            "successes": int(graph.successes_E[edge]),
            "success_low": float(credit.success_low_E[edge]),
            "success_high": float(credit.success_high_E[edge]),
            "margin": float(credit.margin_E[edge]),
            "branch_contrast": float(credit.branch_contrast_E[edge]),
            "progress": float(credit.progress_E[edge]),
            **{f"{name}_part": None if mean is None else float(mean[edge]) for name, mean in means.items()},
            **branches[edge],
        }
        for edge, (source, target) in enumerate(zip(graph.source_E, graph.target_E, strict=True))
    ]


def _actions_of_edges(trajectories: Sequence[Trajectory], credit: Credit) -> list[list[str]]:
    """The actions that made each move, the commonest first."""
    batch = credit.batch
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    edge_S = credit.graph.edge_S.tolist()
    for rollout, index in enumerate(batch.input_K.tolist()):
        start = int(batch.offset_K[rollout])
        for position, step in enumerate(trajectories[index].steps):
            counts[edge_S[start + position]][action_text(step.action)] += 1
    return [_commonest(counts[edge]) for edge in range(len(credit.graph.source_E))]


def _commonest(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda text: (-counts[text], text))


def _mean_of_edges(credit: Credit, value_S: Floats | None) -> Floats | None:
    if value_S is None:
        return None
    edges, size = credit.graph.edge_S, len(credit.graph.source_E)
    return ratio(np.bincount(edges, weights=value_S, minlength=size), np.bincount(edges, minlength=size))


def _branch_facts(credit: Credit, uses_E: Ints) -> list[Record]:
    """How each move compares with all moves out of its state, itself included.

    ``others_success_rate`` is the mean rate of the other moves (eq. 11); distances are in edges.
    """
    graph = credit.graph
    distance_E = np.where(graph.goal_distance_N < 0, np.inf, graph.goal_distance_N)[graph.target_E]
    spread, branches = graph.branches.spread, graph.branches
    columns = {
        "moves_from_source": spread(branches.size_Y).tolist(),
        "uses_from_source": spread(branches.total(uses_E)).astype(np.int64).tolist(),
        "others_success_rate": np.clip(graph.success_rate_E - credit.margin_E, 0, 1).tolist(),
        "distance": _known(distance_E),
        "nearest_distance": _known(-spread(branches.largest(-distance_E))),
        "farthest_distance": _known(spread(branches.largest(distance_E))),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _known(distance_E: Floats) -> list[int | None]:
    return [int(value) if np.isfinite(value) else None for value in distance_E.tolist()]
