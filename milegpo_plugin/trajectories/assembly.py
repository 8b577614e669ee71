"""One rollout with its evidence → one ``Trajectory``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from milegpo_plugin import semconv
from milegpo_plugin.trajectories.calls import Call
from milegpo_plugin.trajectories.declared import apply_declared
from milegpo_plugin.trajectories.options import ReconstructOptions, fits
from milegpo_plugin.trajectories.ownership import RolloutEvidence
from milegpo_plugin.trajectories.results import flag_unasked_runs, match_runs
from milegpo_plugin.trajectories.rewards import RolloutRewards, score_rollout
from milegpo_plugin.trajectories.rollouts import Rollout
from milegpo_plugin.trajectories.steps import (
    build_step,
    drop_retried,
    final_observation,
    observe,
    recover_replies,
)
from milegpo_plugin.trajectories.tasks import task_of
from milegpo_plugin.types import Skipped, Step, Trajectory


@dataclass(frozen=True, slots=True)
class Assembled:
    """A trajectory, or None when no step is left, and what was left out."""

    trajectory: Trajectory | None
    skipped: Sequence[Skipped]
    filtered_calls: int


def assemble(rollout: Rollout, evidence: RolloutEvidence, options: ReconstructOptions) -> Assembled:
    """Observations, actions, results, rewards and flags of one rollout."""
    calls, skipped = drop_retried(rollout.calls)
    filters = options.agents or options.models or options.span_names
    kept = [call for call in calls if _is_wanted(call, options)] if filters else calls
    if not kept:
        reason = f"none of its {len(calls)} model calls passes the filter"
        skipped.append(Skipped("rollout", rollout.rollout_id, reason))
        return Assembled(None, skipped, len(calls))
    recover_replies(calls)
    answers = match_runs(calls, evidence.tools)
    flag_unasked_runs(calls, evidence.tools, answers)
    observations = observe(calls, answers)
    rewards = score_rollout(calls, evidence.rewards, options.reward_name)
    steps = [build_step(call, observations[call], rewards.steps.get(call)) for call in kept]
    final, is_missing = final_observation(kept[-1], observations, answers)
    flags = rollout.flags | ({"missing_final_observation"} if is_missing else set())
    trajectory = _trajectory(rollout, evidence, rewards, options, steps, final, flags)
    skipped += apply_declared(trajectory, [call.start_ns for call in kept], evidence.spans)
    if trajectory.reward is None and _has_failed(kept[-1], evidence):
        trajectory.flags = sorted({*trajectory.flags, "failed"})
    return Assembled(trajectory, skipped, len(calls) - len(kept))


def _trajectory(
    rollout: Rollout,
    evidence: RolloutEvidence,
    rewards: RolloutRewards,
    options: ReconstructOptions,
    steps: list[Step],
    final: str | None,
    flags: set[str],
) -> Trajectory:
    task_id, task_flag = task_of(rollout, evidence.spans, options)
    reward = rewards.outcome if rewards.outcome is not None else options.rewards.get(rollout.rollout_id)
    threshold = options.success_threshold
    conditions = {
        "no_reward": reward is None,
        "copied_reward": rewards.copied,
        "no_token_ids": _lift_missing_token_ids(steps),
        "orphan_parent": _has_orphan(rollout.calls, evidence),
    }
    flags = flags | {name for name, holds in conditions.items() if holds}
    return Trajectory(
        task_id=task_id,
        rollout_id=rollout.rollout_id,
        attempt_id=rollout.attempt_id,
        reward=reward,
        success=None if threshold is None or reward is None else reward > threshold,
        final_observation=final,
        flags=sorted(flags | ({task_flag} if task_flag else set())),
        steps=steps,
    )


def _is_wanted(call: Call, options: ReconstructOptions) -> bool:
    return (
        fits(call.agent, options.agents)
        and fits(call.read.model, options.models)
        and fits(call.read.span.name, options.span_names)
    )


def _lift_missing_token_ids(steps: Sequence[Step]) -> bool:
    """True when no step has token ids; else the steps without them get the flag."""
    without = [step for step in steps if not step.prompt_token_ids or not step.response_token_ids]
    if len(without) == len(steps):
        return True
    for step in without:
        step.flags = sorted({*step.flags, "no_token_ids"})
    return False


def _has_orphan(calls: Sequence[Call], evidence: RolloutEvidence) -> bool:
    """Whether the parent of a call's outermost span was not recorded."""
    parents = {call.spans[0].parent_id for call in calls} - {None}
    for span in evidence.spans:
        if not parents:
            break
        parents.discard(span.span_id)
    return bool(parents)


def _has_failed(last: Call, evidence: RolloutEvidence) -> bool:
    """The last call failed, an exception was recorded, or the run itself ended with an error."""
    if last.read.reply is None and "error_status" in last.flags:
        return True
    if any(span.name == semconv.AGL_EXCEPTION_SPAN for span in evidence.spans):
        return True
    return any(scope.span.status == "ERROR" for scope in last.scopes[-1:])
