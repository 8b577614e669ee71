"""The diagnostics that the paper reports, on the user's own batch (method.md §8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

import numpy as np

from milegpo_plugin.config import CreditConfig, Stage
from milegpo_plugin.credit.advantages import step_advantages
from milegpo_plugin.credit.calibration import Calibration, calibrate_scores
from milegpo_plugin.credit.graph import StateGraph, build_state_graph
from milegpo_plugin.credit.measures import (
    Share,
    ambiguity,
    coverage,
    groups_with_outcome_signal,
    tie_correction,
)
from milegpo_plugin.credit.milestones import Candidates, score_candidates
from milegpo_plugin.credit.shaping import shape_returns
from milegpo_plugin.credit.uncertainty import Intervals, success_intervals
from milegpo_plugin.groups import Batch, StateKeyFunction, build_batch
from milegpo_plugin.states import state_keys as canonical_keys
from milegpo_plugin.types import Trajectory

_STAGES: Final[tuple[Stage, ...]] = ("md", "rcs", "pcc")

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class CandidateSupport:
    """Why milestone candidates deserve their weight, in candidates."""

    local: int
    coverage_only: int
    weak: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Milestone candidates with positive local evidence of each kind."""

    progress: int
    branch: int
    both: int


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Figures of method.md §8; ``seconds`` are wall time by part of the work."""

    rollouts: int
    groups: int
    groups_without_signal: int
    states: int
    coverage: float
    ambiguity: Share
    tie_correction: dict[Stage, Share]
    support: CandidateSupport
    evidence: Evidence
    seconds: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; every share with its counts."""
        values = asdict(self)
        values["ambiguity"] = _share_dict(self.ambiguity)
        values["tie_correction"] = {stage: _share_dict(share) for stage, share in self.tie_correction.items()}
        return values


def diagnose(
    trajectories: Sequence[Trajectory],
    config: CreditConfig | None = None,
    *,
    state_keys: StateKeyFunction = canonical_keys,
) -> Diagnostics:
    """Measure how much credit a batch can carry, and where it comes from.

    Raises:
        CreditError: as :func:`milegpo_plugin.credit.assign_credit`.
    """
    config = config or CreditConfig()
    clock = _Clock()
    keys = clock.time("states", state_keys, trajectories, config.states)
    batch = clock.time("groups", build_batch, trajectories, config, lambda *_: keys)
    graph = clock.time("graph", build_state_graph, batch)
    intervals = clock.time("intervals", success_intervals, graph, config.confidence)
    candidates = clock.time("milestones", score_candidates, graph, config)
    calibration = clock.time("calibration", calibrate_scores, graph, candidates, intervals, config)
    ties: dict[Stage, Share] = {}
    for stage in _STAGES:
        staged = config.model_copy(update={"stage": stage, "estimator": "milegpo"})
        parts = (batch, graph, candidates, calibration, intervals, staged)
        ties[stage] = clock.time(stage, _tie_correction, *parts)
    return Diagnostics(
        rollouts=len(batch.input_K),
        groups=len(batch.task_ids),
        groups_without_signal=int(np.count_nonzero(~groups_with_outcome_signal(batch))),
        states=int(np.count_nonzero(~(graph.goal_N | graph.end_N))),
        coverage=coverage(batch, graph),
        ambiguity=ambiguity(graph),
        tie_correction=ties,
        support=_support(candidates, calibration, config),
        evidence=_evidence(candidates, calibration),
        seconds=clock.seconds,
    )


class _Clock:
    """Wall time of named pieces of work, in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, name: str, work: Callable[[Unpack[Arguments]], Result], *args: *Arguments) -> Result:
        start = perf_counter()
        result = work(*args)
        self.seconds[name] = perf_counter() - start
        return result


def _tie_correction(
    batch: Batch,
    graph: StateGraph,
    candidates: Candidates,
    calibration: Calibration,
    intervals: Intervals,
    config: CreditConfig,
) -> Share:
    shaping = shape_returns(graph, candidates, calibration, intervals, config)
    advantages = step_advantages(batch, shaping, config)
    assert advantages.graph_advantage_S is not None
    assert advantages.shaped_advantage_S is not None
    return tie_correction(batch, advantages.graph_advantage_S, advantages.shaped_advantage_S)


def _support(candidates: Candidates, calibration: Calibration, config: CreditConfig) -> CandidateSupport:
    local_N = (calibration.progress_evidence_N > 0) | (calibration.branch_evidence_N > 0)
    covered_N = candidates.coverage_N >= config.support_threshold
    return CandidateSupport(
        local=int(np.count_nonzero(candidates.milestone_N & local_N)),
        coverage_only=int(np.count_nonzero(candidates.milestone_N & ~local_N & covered_N)),
        weak=int(np.count_nonzero(candidates.milestone_N & ~local_N & ~covered_N)),
    )


def _evidence(candidates: Candidates, calibration: Calibration) -> Evidence:
    progress_N = candidates.milestone_N & (calibration.progress_evidence_N > 0)
    branch_N = candidates.milestone_N & (calibration.branch_evidence_N > 0)
    return Evidence(
        progress=int(np.count_nonzero(progress_N)),
        branch=int(np.count_nonzero(branch_N)),
        both=int(np.count_nonzero(progress_N & branch_N)),
    )


def _share_dict(share: Share) -> dict[str, float | None]:
    return {"part": share.part, "whole": share.whole, "share": share.value}
