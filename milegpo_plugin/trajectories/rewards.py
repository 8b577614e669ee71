"""Rewards on steps and rollouts.

A reward belongs to what it is linked to, else to the last call that began before it: it never
slides to an earlier call. The outcome is the reward named final, else the last one. Every other
reward is a step reward; several after one call add up. One value on every step is one reward that
was copied, and is not summed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from milegpo_plugin import semconv
from milegpo_plugin.adapters import RewardSignal
from milegpo_plugin.trajectories.calls import Call

_FINAL_NAMES: Final = frozenset({"final", "final_reward", "outcome", "outcome_reward"})


@dataclass(frozen=True, slots=True)
class RolloutRewards:
    """``outcome`` of the rollout, step rewards by call, and whether copies were taken out."""

    outcome: float | None
    steps: Mapping[Call, float]
    copied: bool = False


@dataclass(frozen=True, slots=True)
class _Reward:
    call: Call | None
    name: str
    value: float


def score_rollout(calls: Sequence[Call], signals: Sequence[RewardSignal], name: str | None) -> RolloutRewards:
    """The rewards of one rollout.

    Args:
        calls: the calls of the rollout in order of time.
        signals: its rewards in order of time.
        name: the dimension that counts; None for the first of each reward.
    """
    rewards = [reward for signal in signals if (reward := _reward(signal, calls, name))]
    if not rewards:
        return RolloutRewards(None, {})
    named = [index for index, reward in enumerate(rewards) if reward.name.lower() in _FINAL_NAMES]
    outcome = rewards.pop(named[-1] if named else -1)
    steps: defaultdict[Call, float] = defaultdict(float)
    for reward in rewards:
        if reward.call is not None:
            steps[reward.call] += reward.value
    if _are_copies(calls, outcome, rewards):
        return RolloutRewards(outcome.value, {}, copied=True)
    return RolloutRewards(outcome.value, dict(steps))


def _reward(signal: RewardSignal, calls: Sequence[Call], name: str | None) -> _Reward | None:
    """The dimension that counts; a reward without it is none."""
    wanted = [item for item in signal.dimensions if name is None or item[0] == name]
    if not wanted:
        return None
    return _Reward(_rewarded(signal, calls), wanted[0][0], wanted[0][1])


def _rewarded(signal: RewardSignal, calls: Sequence[Call]) -> Call | None:
    linked = next((call for call in calls if _is_linked(signal, call)), None)
    if linked is not None:
        return linked
    before = bisect_left(calls, signal.time_ns, key=lambda call: call.start_ns)
    return calls[before - 1] if before else None


def _is_linked(signal: RewardSignal, call: Call) -> bool:
    span_ids = {span.span_id for span in call.spans}
    if signal.on_span and signal.span.span_id in span_ids:
        return True
    for key, value in signal.links:
        if key == "span_id" and value in span_ids:
            return True
        if key == semconv.RESPONSE_ID and value == call.read.response_id:
            return True
    return False


def _are_copies(calls: Sequence[Call], outcome: _Reward, rewards: Sequence[_Reward]) -> bool:
    """Whether one and the same value stands on every one of several steps."""
    if len(calls) < 2 or any(reward.value != outcome.value for reward in rewards):
        return False
    rewarded = [reward.call for reward in (*rewards, outcome)]
    return len(rewarded) == len(calls) and set(rewarded) == set(calls)
