"""A platform may try a rollout several times: one attempt counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from milegpo_plugin.trajectories.ownership import RolloutEvidence
from milegpo_plugin.trajectories.rollouts import Rollout
from milegpo_plugin.types import Skipped


def choose_attempts(
    rollouts: Sequence[Rollout], evidence: Mapping[Rollout, RolloutEvidence], given: Mapping[str, str]
) -> tuple[list[Rollout], list[Skipped]]:
    """The given attempt of each rollout, else the last one with a reward, else the last one."""
    attempts: defaultdict[str, list[Rollout]] = defaultdict(list)
    chosen: list[Rollout] = []
    for rollout in rollouts:
        if rollout.by_platform:
            attempts[rollout.rollout_id].append(rollout)
        else:
            chosen.append(rollout)
    skipped = []
    for rollout_id, tries in attempts.items():
        best = max(tries, key=lambda t: _rank(t, evidence, given.get(rollout_id)))
        chosen.append(best)
        for other in tries:
            if other is not best:
                best.flags.add("stale_attempt")
                name = f"{rollout_id}/{other.attempt_id}"
                skipped.append(Skipped("attempt", name, f"attempt {best.attempt_id} counts"))
    return sorted(chosen, key=lambda r: (r.calls[0].start_ns, r.rollout_id)), skipped


def _rank(
    attempt: Rollout, evidence: Mapping[Rollout, RolloutEvidence], given: str | None
) -> tuple[bool, bool, int, str]:
    is_given = given is not None and attempt.attempt_id == given
    has_reward = bool(evidence[attempt].rewards)
    return is_given, has_reward, attempt.calls[0].start_ns, attempt.attempt_id or ""
