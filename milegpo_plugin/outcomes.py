"""Outcomes and scores of rollouts, with every reward counted once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, isclose, isfinite

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.errors import CreditError
from milegpo_plugin.types import Skipped, Trajectory


def is_success(trajectory: Trajectory, config: CreditConfig) -> bool:
    """R > threshold, unless the trajectory says so itself (method.md §1)."""
    if _counts_as_zero(trajectory, config):
        return False
    if trajectory.success is not None:
        return trajectory.success
    return trajectory.reward is not None and trajectory.reward > config.success_threshold


def is_failed(trajectory: Trajectory) -> bool:
    """Whether the rollout broke, so that its outcome says nothing about the policy."""
    return "failed" in trajectory.flags


@dataclass(frozen=True, slots=True)
class Rewards:
    """Scores of the rollouts of one group, the rewards of their steps, and remarks.

    ``steps`` is None where the outcome is the only reward; it belongs to the last step.
    """

    scores: list[float]
    steps: list[list[float] | None]
    notes: list[Skipped]


def settle_rewards(group: Sequence[Trajectory], config: CreditConfig) -> Rewards:
    """Z and the reward of each step, counting every reward once (method.md §6).

    Z is the outcome plus the rewards of the steps. Traces record the outcome in several ways, so
    step rewards that only repeat it do not count again:

    * all steps of a rollout carry the outcome: copies, of which the last one counts;
    * in every rollout of the group the step rewards sum to the outcome: it is that sum;
    * in every rollout of the group the last step's reward is the outcome: it is that reward.

    The group decides on the last two together, so that its scores stay comparable.

    Raises:
        CreditError: a step reward is not finite.
    """
    outcomes = [_outcome(item, config) for item in group]
    rewards = Rewards(list(outcomes), [None] * len(group), [])
    own: list[tuple[int, list[float | None]]] = []
    for index, item in enumerate(group):
        known = None if _counts_as_zero(item, config) else _step_rewards(item)
        if known is not None and _is_copied(known, outcomes[index]):
            note = "outcome copied onto every step, counted once"
            rewards.notes.append(Skipped("step rewards", item.rollout_id, note))
        elif known is not None:
            own.append((index, known))
    summed = all(isclose(fsum(_present(known)), outcomes[index]) for index, known in own)
    last = all(known[-1] is None or known[-1] == outcomes[index] for index, known in own)
    for index, known in own:
        values = [value or 0.0 for value in known]
        if not summed and not (last and known[-1] is not None):
            values[-1] += outcomes[index]
        rewards.steps[index] = values
        rewards.scores[index] = outcomes[index] if summed else fsum(values)
    return rewards


def not_finite(trajectory: Trajectory, what: str, value: float) -> str:
    """The line that refuses a reward."""
    return (
        f"rollout {trajectory.rollout_id!r} of task {trajectory.task_id!r}: {what} must be a finite "
        f"number, got {value!r}: correct it, or use null when it is unknown"
    )


def _counts_as_zero(trajectory: Trajectory, config: CreditConfig) -> bool:
    return config.on_failure == "zero" and is_failed(trajectory)


def _outcome(trajectory: Trajectory, config: CreditConfig) -> float:
    """R; a known success without a reward is 1 or 0, and a failure may count as 0."""
    if _counts_as_zero(trajectory, config):
        return 0.0
    return float(bool(trajectory.success)) if trajectory.reward is None else trajectory.reward


def _step_rewards(trajectory: Trajectory) -> list[float | None] | None:
    """The recorded step rewards, or None when no step has one."""
    rewards = [step.reward for step in trajectory.steps]
    if rewards.count(None) == len(rewards):
        return None
    for value in _present(rewards):
        if not isfinite(value):
            raise CreditError(not_finite(trajectory, "a step reward", value))
    return rewards


def _present(rewards: Iterable[float | None]) -> list[float]:
    return [value for value in rewards if value is not None]


def _is_copied(rewards: Sequence[float | None], outcome: float) -> bool:
    known = _present(rewards)
    return outcome != 0 and len(known) > 1 and all(value == outcome for value in known)
