"""The way from spans to trajectories, step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from milegpo_plugin.trajectories.agents import assign_agents
from milegpo_plugin.trajectories.assembly import assemble
from milegpo_plugin.trajectories.attempts import choose_attempts
from milegpo_plugin.trajectories.dedup import merge_duplicates
from milegpo_plugin.trajectories.evidence import read_evidence
from milegpo_plugin.trajectories.options import Reconstruction, ReconstructOptions
from milegpo_plugin.trajectories.ownership import share_evidence
from milegpo_plugin.trajectories.rollouts import group_rollouts
from milegpo_plugin.types import Skipped, Span, Trajectory

_DEFAULTS = ReconstructOptions()


def build_trajectories(spans: Sequence[Span], options: ReconstructOptions = _DEFAULTS) -> Reconstruction:
    """Rebuild every rollout in ``spans``.

    Time and memory grow with the size of the spans. The result does not depend on their order.

    Args:
        spans: finished spans of any dialects, with their log records.
        options: names, rewards and filters; see :class:`ReconstructOptions`.
    """
    evidence = read_evidence(spans)
    calls = merge_duplicates(evidence)
    assign_agents(calls, evidence)
    rollouts = group_rollouts(calls)
    shared, skipped = share_evidence(rollouts, evidence)
    chosen, stale = choose_attempts(rollouts, shared, options.attempts)
    skipped += [*stale, *evidence.unreadable]
    trajectories: list[Trajectory] = []
    for rollout in chosen:
        assembled = assemble(rollout, shared[rollout], options)
        skipped.extend(assembled.skipped)
        evidence.counts["filtered_calls"] += assembled.filtered_calls
        if assembled.trajectory is not None:
            trajectories.append(assembled.trajectory)
    return Reconstruction(trajectories, _sorted(skipped), evidence.counts, _count_flags(trajectories))


def _sorted(skipped: Iterable[Skipped]) -> list[Skipped]:
    return sorted(skipped, key=lambda item: (item.kind, item.id, item.reason))


def _count_flags(trajectories: Iterable[Trajectory]) -> Counter[str]:
    flags: list[str] = []
    for trajectory in trajectories:
        flags.extend(trajectory.flags)
        for step in trajectory.steps:
            flags.extend(step.flags)
    return Counter(flags)
