"""Rewards on steps and rollouts.

A reward belongs to what it is linked to, else to the last call that began before it: it never
slides to an earlier call. The outcome is the reward named final, else the last one. Every other
reward is a step reward; several after one call add up. One value on every step is one reward that
was copied, and is not summed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from milegpo_plugin import semconv
from milegpo_plugin.adapters import RewardSignal
from milegpo_plugin.trajectories.calls import Call, in_call_order

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
        calls: the calls of the rollout.
        signals: its rewards.
        name: the dimension that counts; None for the first of each reward.
    """
    if not signals:
        return RolloutRewards(None, {})
    places = _Places(calls)
    in_time = sorted(signals, key=lambda signal: (signal.time_ns, places.start_of(signal)))
    rewards = [reward for signal in in_time if (reward := _reward(signal, places, name))]
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


def _reward(signal: RewardSignal, calls: _Places, name: str | None) -> _Reward | None:
    """The dimension that counts; a reward without it, or without a number there, is none."""
    wanted = [item for item in signal.dimensions if name is None or item[0] == name]
    if not wanted or not math.isfinite(wanted[0][1]):
        return None
    return _Reward(calls.of(signal), wanted[0][0], wanted[0][1])


class _Places:
    """From what a reward tells to the call that it belongs to."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._in_time = in_call_order(calls)

    @cached_property
    def _by_span(self) -> Mapping[str, Call]:
        return {span.span_id: call for call in self._calls for span in call.spans}

    @cached_property
    def _by_response(self) -> Mapping[str, Call]:
        return {call.read.response_id: call for call in self._calls if call.read.response_id}

    def of(self, signal: RewardSignal) -> Call | None:
        """By link, by the span it stands on, else the last call that began before."""
        for key, value in signal.links:
            linked = self._linked(key, value)
            if linked is not None:
                return linked
        if signal.on_span and signal.span.span_id in self._by_span:
            return self._by_span[signal.span.span_id]
        before = bisect_left(self._in_time, signal.time_ns, key=lambda call: call.start_ns)
        return self._in_time[before - 1] if before else None

    def start_of(self, signal: RewardSignal) -> int:
        """When the call of a reward began: of scores that were given at once the latest call's is last."""
        call = self.of(signal)
        return 0 if call is None else call.start_ns

    def _linked(self, key: str, value: str) -> Call | None:
        if key == "span_id":
            return self._by_span.get(value)
        return self._by_response.get(value) if key == semconv.RESPONSE_ID else None


def _are_copies(calls: Sequence[Call], outcome: _Reward, rewards: Sequence[_Reward]) -> bool:
    """Whether one and the same value stands on every one of several steps."""
    if len(calls) < 2 or any(reward.value != outcome.value for reward in rewards):
        return False
    rewarded = [reward.call for reward in (*rewards, outcome)]
    return len(rewarded) == len(calls) and set(rewarded) == set(calls)
