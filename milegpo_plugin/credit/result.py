"""The credit of a batch, as arrays and as the records of ``credit.jsonl`` and ``nodes.jsonl``.

Axes: ``_I`` input trajectories, ``_K`` rollouts in use, ``_S`` their steps, ``_N`` nodes, ``_E`` edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

import numpy as np

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit.advantages import Advantages
from milegpo_plugin.credit.calibration import Calibration
from milegpo_plugin.credit.graph import UNREACHABLE, StateGraph
from milegpo_plugin.credit.measures import measure
from milegpo_plugin.credit.milestones import Candidates
from milegpo_plugin.credit.shaping import Shaping
from milegpo_plugin.credit.uncertainty import Intervals
from milegpo_plugin.groups import SKIPPED, Batch, Bools, Floats, Ints
from milegpo_plugin.types import Skipped

STEP_FIELDS: Final = (
    "graph_return",
    "shaped_return",
    "delta_plus",
    "delta_minus",
    "graph_advantage",
    "shaped_advantage",
    "episode_advantage",
    "advantage",
)
FILTERED: Final = "group without signal"
"""Reason of a rollout that ``CreditConfig.filter_groups`` keeps from the trainer."""


@dataclass(frozen=True, slots=True)
class Credit:
    """Everything that was computed about a batch: float64 arrays, free of NaN and infinity.

    ``graph`` holds the counts: visits, successes, rates and goal distances of nodes and edges.
    Scores are 0 where a node is no candidate; the masks ``milestone_N`` and ``trap_N`` tell. Step
    arrays are None where the estimator does not define them.
    """

    config: CreditConfig
    batch: Batch
    graph: StateGraph
    milestone_N: Bools  # (N,) milestone candidate
    trap_N: Bools  # (N,) admitted trap
    success_low_N: Floats  # (N,) Wilson interval of the success rate
    success_high_N: Floats  # (N,)
    milestone_score_N: Floats  # (N,) S0+
    trap_score_N: Floats  # (N,) S-
    branch_evidence_N: Floats  # (N,) b
    progress_evidence_N: Floats  # (N,) psi-bar
    calibrated_score_N: Floats  # (N,) S_pcc+
    milestone_weight_N: Floats  # (N,) weight in the milestone potential; a milestone has one > 0
    milestone_potential_N: Floats  # (N,) Phi+
    trap_potential_N: Floats  # (N,) Phi-
    success_low_E: Floats  # (E,) Wilson interval of the success rate
    success_high_E: Floats  # (E,)
    margin_E: Floats  # (E,) success rate minus the mean of the siblings
    branch_contrast_E: Floats  # (E,) c_bcc
    progress_E: Floats  # (E,) psi
    graph_return_S: Floats | None  # (S,) r^G
    shaped_return_S: Floats | None  # (S,) r^M
    delta_plus_S: Floats | None  # (S,)
    delta_minus_S: Floats | None  # (S,)
    graph_advantage_S: Floats | None  # (S,) Norm(r^G)
    shaped_advantage_S: Floats | None  # (S,) Norm(r^M)
    episode_advantage_S: Floats | None  # (S,) Norm_q(Z)
    step_advantage_S: Floats | None  # (S,) the step part, before its weight
    advantage_S: Floats  # (S,) what the trainer gets
    trained_K: Bools  # (K,) what it gets it for, see ``CreditConfig.filter_groups``

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What was left out and why: rollouts, then step rewards that only repeat an outcome."""
        filtered = self.batch.input_K[~self.trained_K].tolist()
        names = (self.batch.name_I[index][1] for index in filtered)
        return (
            *self.batch.skipped,
            *(Skipped("rollout", name, FILTERED) for name in names),
            *self.batch.notes,
        )

    def advantages(self, index: int) -> Floats | None:
        """Advantages of the steps of trajectory ``index`` of the input; None when it was left out."""
        row = self.batch.row_I[index]
        if row == SKIPPED or not self.trained_K[row]:
            return None
        return self.advantage_S[self.batch.offset_K[row] : self.batch.offset_K[row + 1]]

    def step_records(self) -> Iterator[dict[str, Any]]:
        """Lines of ``credit.jsonl`` in canonical order; values of skipped rollouts are null."""
        unknown = dict.fromkeys(STEP_FIELDS)
        rows = self._step_values()
        for index in self.batch.order_I.tolist():
            task_id, rollout_id = self.batch.name_I[index]
            used = self.batch.row_I[index] != SKIPPED
            for step, state in enumerate(self.batch.keys.steps[index]):
                identity = {"task_id": task_id, "rollout_id": rollout_id, "step": step, "state": state}
                yield identity | (next(rows) if used else unknown)

    def _step_values(self) -> Iterator[dict[str, float | None]]:
        """The values of every step in use; rollouts in use have the canonical order, too."""
        arrays = (getattr(self, f"{name}_S") for name in STEP_FIELDS)
        columns = (repeat(None) if array is None else array.tolist() for array in arrays)
        return (dict(zip(STEP_FIELDS, values, strict=True)) for values in zip(*columns, strict=False))

    def node_records(self) -> Iterator[dict[str, Any]]:
        """Lines of ``nodes.jsonl``, group by group, states in the order they first occur.

        ``visits`` and ``successes`` count rollouts; ``success_low`` and ``success_high`` bound the
        success rate at the configured confidence.
        """
        graph = self.graph
        columns = {
            "task_id": [self.batch.task_ids[group] for group in graph.group_N.tolist()],
            "state": self.batch.state_N,
            "visits": graph.visits_N.tolist(),
            "successes": graph.successes_N.tolist(),
            "failures": (graph.visits_N - graph.successes_N).tolist(),
            "success_low": self.success_low_N.tolist(),
            "success_high": self.success_high_N.tolist(),
            "goal_distance": _known(graph.goal_distance_N, graph.goal_distance_N != UNREACHABLE),
            "milestone_score": _known(self.milestone_score_N, self.milestone_N),
            "trap_score": _known(self.trap_score_N, self.trap_N),
            "branch_evidence": self.branch_evidence_N.tolist(),
            "progress_evidence": self.progress_evidence_N.tolist(),
            "calibrated_score": _known(self.calibrated_score_N, self.milestone_N),
            "milestone_potential": self.milestone_potential_N.tolist(),
            "trap_potential": self.trap_potential_N.tolist(),
            "kind": self._kinds(),
        }
        for values in zip(*columns.values(), strict=True):
            yield dict(zip(columns, values, strict=True))

    def metrics(self) -> dict[str, float]:
        """Figures for a tracker, see :func:`milegpo_plugin.credit.measures.measure`."""
        return measure(self)

    def _kinds(self) -> list[str]:
        """What each node is; a milestone is a candidate with weight in the potential."""
        marks = [self.graph.goal_N, self.graph.end_N, self.trap_N, self.milestone_weight_N > 0]
        kinds: list[str] = np.select(marks, ["goal", "end", "trap", "milestone"], "state").tolist()
        return kinds


def _known(value_N: Floats | Ints, known_N: Bools) -> list[float | None]:
    return [value if known else None for value, known in zip(value_N.tolist(), known_N.tolist(), strict=True)]


def collect_credit(
    config: CreditConfig,
    batch: Batch,
    graph: StateGraph,
    intervals: Intervals,
    candidates: Candidates,
    calibration: Calibration,
    shaping: Shaping,
    advantages: Advantages,
    trained_K: Bools,
) -> Credit:
    """Put the results of all rooms together; drop the step values that the estimator does not use."""
    uses_graph = config.estimator in ("milegpo", "graphgpo", "plangpo")
    return Credit(
        config=config,
        batch=batch,
        graph=graph,
        milestone_N=candidates.milestone_N,
        trap_N=candidates.trap_N,
        success_low_N=intervals.low_N,
        success_high_N=intervals.high_N,
        milestone_score_N=candidates.milestone_score_N,
        trap_score_N=candidates.trap_score_N,
        branch_evidence_N=calibration.branch_evidence_N,
        progress_evidence_N=calibration.progress_evidence_N,
        calibrated_score_N=calibration.calibrated_score_N,
        milestone_weight_N=shaping.milestone_weight_N,
        milestone_potential_N=shaping.milestone_potential_N,
        trap_potential_N=shaping.trap_potential_N,
        success_low_E=intervals.low_E,
        success_high_E=intervals.high_E,
        margin_E=calibration.margin_E,
        branch_contrast_E=calibration.branch_contrast_E,
        progress_E=calibration.progress_E,
        graph_return_S=shaping.graph_return_S if uses_graph else None,
        shaped_return_S=shaping.shaped_return_S if uses_graph else None,
        delta_plus_S=shaping.delta_plus_S if uses_graph else None,
        delta_minus_S=shaping.delta_minus_S if uses_graph else None,
        graph_advantage_S=advantages.graph_advantage_S,
        shaped_advantage_S=advantages.shaped_advantage_S,
        episode_advantage_S=advantages.episode_advantage_S,
        step_advantage_S=advantages.step_advantage_S,
        advantage_S=advantages.advantage_S,
        trained_K=trained_K,
    )
