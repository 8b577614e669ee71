"""What a caller may ask of the reconstruction, and what it gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from milegpo_plugin.types import Skipped, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconstructOptions:
    """Options of :func:`build_trajectories`; every default is "as the trace says".

    Attributes:
        task_attribute: span or resource attribute that names the task.
        tasks: task ids by rollout id, where a platform knows them; they come first.
        rewards: outcomes by rollout id, for rollouts whose trace has none.
        reward_name: the reward dimension that counts; by default the first of each reward.
        success_threshold: success is reward > threshold; by default success stays unknown.
        attempts: the attempt that counts, by rollout id; by default the last one with a reward,
            else the last one.
        agents: names of the agents whose calls become steps.
        models: names of the models whose calls become steps.
        span_names: names of the spans that become steps.

    The last three are shell-style patterns; one that begins with ``!`` excludes. A call is kept
    when it fits an including pattern (if there is any) and no excluding one.
    """

    task_attribute: str | None = None
    tasks: Mapping[str, str] = field(default_factory=dict)
    rewards: Mapping[str, float] = field(default_factory=dict)
    reward_name: str | None = None
    success_threshold: float | None = None
    attempts: Mapping[str, str] = field(default_factory=dict)
    agents: Sequence[str] = ()
    models: Sequence[str] = ()
    span_names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """Trajectories in order of their first call, and an account of everything else.

    ``counts`` has spans, duplicate_spans, unknown_spans, model_calls, duplicate_calls, tool_runs,
    rewards and filtered_calls; ``flags`` counts the flags of rollouts and of steps.
    """

    trajectories: list[Trajectory]
    skipped: list[Skipped]
    counts: Mapping[str, int]
    flags: Counter[str]


def fits(name: str | None, patterns: Sequence[str]) -> bool:
    """Whether ``name`` passes the patterns; an unknown name passes only if none includes."""
    if not patterns:
        return True
    excluding = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    including = [pattern for pattern in patterns if not pattern.startswith("!")]
    if name is None:
        return not including
    if any(fnmatchcase(name, pattern) for pattern in excluding):
        return False
    return not including or any(fnmatchcase(name, pattern) for pattern in including)
