"""Trajectories become one batch of arrays: who is compared with whom, and what was left out.

Rollouts of one task in one call form a group; the call is the batch, so the same task in another
batch is another group. Nothing here depends on the order of the input: tasks, rollouts and attempts
are sorted by their ids. Whatever is left out has a line in ``Batch.skipped``.

Axes: ``_G`` groups, ``_K`` rollouts in use, ``_S`` their steps, ``_N`` nodes of the state graphs,
``_I`` the trajectories as they were passed in.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, count, groupby
from math import isfinite
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from milegpo_plugin.config import CreditConfig, StateConfig
from milegpo_plugin.errors import CreditError
from milegpo_plugin.invalid_actions import invalid_actions
from milegpo_plugin.outcomes import Rewards, is_failed, is_success, not_finite, settle_rewards
from milegpo_plugin.states import StateKeys, action_key, compile_action_pattern
from milegpo_plugin.types import Skipped, Trajectory

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
StateKeyFunction: TypeAlias = Callable[[Sequence[Trajectory], StateConfig], StateKeys]

SKIPPED: Final = -1
"""Row of an input trajectory that is not in use."""


class Terminal(Enum):
    """Where a rollout ends when its last observation is not an ordinary state (method.md §1)."""

    GOAL = "<goal>"
    END = "<end>"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Batch:
    """The rollouts in use as arrays, and the reasons of those that are not.

    ``goal_N`` and ``end_N`` mark the nodes that every success of a group, and every failure
    without a recorded end, share.
    """

    task_ids: tuple[str, ...]  # (G,) sorted
    input_K: Ints  # (K,) index among the trajectories passed in
    group_K: Ints  # (K,) sorted
    score_K: Floats  # (K,) Z: the outcome and the step rewards
    success_K: Bools  # (K,)
    offset_K: Ints  # (K + 1,) first step of each rollout, and S
    rollout_S: Ints  # (S,) sorted
    source_S: Ints  # (S,) node that the step acted on
    target_S: Ints  # (S,) node that it led to
    choice_S: Ints | None  # (S,) equal for the same action in the same state; None where no one asks
    reward_S: Floats  # (S,) its own reward; the outcome belongs to the last step
    invalid_S: Bools  # (S,) its action was invalid, as far as the trace tells
    state_N: tuple[str, ...]  # (N,) canonical key
    group_N: Ints  # (N,) sorted
    goal_N: Bools  # (N,)
    end_N: Bools  # (N,)
    name_I: tuple[tuple[str, str], ...]  # (I,) task and rollout id
    row_I: Ints  # (I,) row in _K, or SKIPPED
    order_I: Ints  # (I,) the input in canonical order
    keys: StateKeys  # of every input trajectory
    skipped: tuple[Skipped, ...]
    notes: tuple[Skipped, ...]  # rewards that were left out of a rollout in use

    @property
    def known_choice_S(self) -> Ints:
        """``choice_S`` for those that need it."""
        assert self.choice_S is not None, "the batch was built for an estimator without choices"
        return self.choice_S


@dataclass(frozen=True, slots=True)
class Selection:
    """Input indices in canonical order, those in use, and why the others are not."""

    order: list[int]
    kept: list[int]
    skipped: list[Skipped]


def build_batch(
    trajectories: Sequence[Trajectory],
    config: CreditConfig,
    state_keys: StateKeyFunction,
    *,
    is_part: bool = False,
) -> Batch:
    """Group the rollouts by task, settle their rewards and number their states.

    ``is_part`` says that the batch is larger: that no rollout here has an outcome is then no error.

    Raises:
        CreditError: no rollout has an outcome or none can be used, a reward is not finite, or
            two trajectories carry the same ids.
    """
    if not is_part:
        check_outcomes(len(trajectories), any(map(has_outcome, trajectories)))
    selection = select_rollouts(trajectories, config)
    order, kept, skipped = selection.order, selection.kept, selection.skipped
    if not kept:
        raise CreditError(nothing_usable(skipped))
    groups = [[*group] for _, group in groupby(kept, key=lambda index: trajectories[index].task_id)]
    rewards = [settle_rewards([trajectories[index] for index in group], config) for group in groups]
    keys = state_keys(trajectories, config.states)
    nodes = _number_states(trajectories, groups, keys, config)
    return _assemble(trajectories, order, groups, rewards, keys, nodes, skipped, config)


# --- Which rollouts are in use ------------------------------------------------------------------


def check_outcomes(rollouts: int, any_outcome: bool) -> None:
    """Refuse a batch without rollouts or without outcomes.

    Raises:
        CreditError: there are none.
    """
    if not rollouts:
        raise CreditError("no rollouts: the input holds no trajectory")
    if not any_outcome:
        raise CreditError(
            f"no outcomes: none of the {rollouts} rollouts has a reward or a success flag: "
            'pass --rewards FILE.jsonl with lines {"rollout_id": …, "reward": …}, or emit a reward'
        )


def has_outcome(trajectory: Trajectory) -> bool:
    """Whether the trajectory says how the rollout ended."""
    return trajectory.reward is not None or trajectory.success is not None


def nothing_usable(skipped: Iterable[Skipped]) -> str:
    """The line that refuses a batch whose rollouts were all left out."""
    reasons = Counter(item.reason for item in skipped)
    listed = ", ".join(f"{reason}: {number}" for reason, number in sorted(reasons.items()))
    return f"no rollout can be used ({listed})"


def select_rollouts(trajectories: Sequence[Trajectory], config: CreditConfig) -> Selection:
    """One attempt of each rollout that can be used, and why the others cannot.

    Raises:
        CreditError: a reward is not finite, or two trajectories carry the same ids.
    """
    for item in trajectories:
        if item.reward is not None and not isfinite(item.reward):
            raise CreditError(not_finite(item, "reward", item.reward))
    identities = [_identity(trajectory) for trajectory in trajectories]
    order = sorted(range(len(trajectories)), key=identities.__getitem__)
    attempts = [[*same] for _, same in groupby(order, key=lambda index: identities[index][:2])]
    return Selection(order, *_select(trajectories, attempts, config))


def _identity(trajectory: Trajectory) -> tuple[str, str, list[tuple[int, str]]]:
    attempt = trajectory.attempt_id
    return trajectory.task_id, trajectory.rollout_id, [] if attempt is None else _natural(attempt)


def _natural(text: str) -> list[tuple[int, str]]:
    """Sort key under which attempt 10 follows attempt 9; equal texts only have equal keys."""
    parts = re.split(r"(\d+)", text)
    return [(int(part), part) if index % 2 else (0, part) for index, part in enumerate(parts)]


def _select(
    trajectories: Sequence[Trajectory], rollouts: Iterable[list[int]], config: CreditConfig
) -> tuple[list[int], list[Skipped]]:
    """The usable rollouts, each one attempt, in canonical order, and why the others are not."""
    kept, skipped = [], []
    for attempts in rollouts:
        chosen = attempts[0] if len(attempts) == 1 else _choose_attempt(trajectories, attempts)
        for index in attempts:
            reason = _unusable(trajectories[index], config) if index == chosen else "stale attempt"
            if reason is None:
                kept.append(index)
            else:
                skipped.append(Skipped("rollout", trajectories[index].rollout_id, reason))
    return kept, skipped


def _choose_attempt(trajectories: Sequence[Trajectory], attempts: Sequence[int]) -> int:
    """The last attempt that did not fail, else the last."""
    names = [trajectories[index].attempt_id for index in attempts]
    if len(set(names)) < len(names):
        first = trajectories[attempts[0]]
        raise CreditError(
            f"rollout {first.rollout_id!r} of task {first.task_id!r}: {len(names)} trajectories have these "
            f"ids, got attempts {names!r}: give each rollout its own id, or each attempt its own"
        )
    sound = [index for index in attempts if not is_failed(trajectories[index])]
    return (sound or attempts)[-1]


def _unusable(trajectory: Trajectory, config: CreditConfig) -> str | None:
    failed = is_failed(trajectory)
    if failed and config.on_failure == "drop":
        return "failed"
    if not trajectory.steps:
        return "no steps"
    counted_as_zero = failed and config.on_failure == "zero"
    if not has_outcome(trajectory) and not counted_as_zero:
        return "no reward"
    return None


# --- States -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Node ids along every rollout, end included, and what the ids stand for."""

    paths: array[int]
    names: list[str]
    groups: list[int]
    goals: list[int]
    ends: list[int]


def _number_states(
    trajectories: Sequence[Trajectory], groups: Iterable[Iterable[int]], keys: StateKeys, config: CreditConfig
) -> _Nodes:
    """Number the states of each group by one look-up a step, in canonical order."""
    following = count()
    nodes = _Nodes(array("q"), [], [], [], [])
    for number, group in enumerate(groups):
        table: defaultdict[str | Terminal, int] = defaultdict(following.__next__)
        for index in group:
            nodes.paths.extend(map(table.__getitem__, keys.steps[index]))
            nodes.paths.append(table[_end_of(trajectories[index], keys.final[index], config)])
        nodes.goals.extend([table[Terminal.GOAL]] if Terminal.GOAL in table else [])
        nodes.ends.extend([table[Terminal.END]] if Terminal.END in table else [])
        nodes.names.extend(map(str, table))
        nodes.groups.extend([number] * len(table))
    return nodes


def _end_of(trajectory: Trajectory, final: str | None, config: CreditConfig) -> str | Terminal:
    if is_success(trajectory, config):
        return Terminal.GOAL
    return Terminal.END if final is None else final


def _assemble(
    trajectories: Sequence[Trajectory],
    order: Sequence[int],
    groups: Sequence[Sequence[int]],
    rewards: Sequence[Rewards],
    keys: StateKeys,
    nodes: _Nodes,
    skipped: Sequence[Skipped],
    config: CreditConfig,
) -> Batch:
    members = [index for group in groups for index in group]
    length_K = np.array([len(trajectories[index].steps) for index in members], dtype=np.int64)
    path = np.array(nodes.paths, dtype=np.int64)
    acts = np.ones(len(path), dtype=np.bool_)
    acts[np.cumsum(length_K + 1) - 1] = False
    row_I = np.full(len(trajectories), SKIPPED, dtype=np.int64)
    row_I[members] = np.arange(len(members))
    source, target = path[acts], path[1:][acts[:-1]]
    plans = config.estimator == "plangpo"
    return Batch(
        task_ids=tuple(trajectories[group[0]].task_id for group in groups),
        input_K=np.array(members, dtype=np.int64),
        group_K=_repeat_index([len(group) for group in groups]),
        score_K=np.array([score for group in rewards for score in group.scores], dtype=np.float64),
        success_K=np.array([is_success(trajectories[index], config) for index in members], dtype=np.bool_),
        offset_K=np.concatenate([[0], np.cumsum(length_K)]),
        rollout_S=_repeat_index(length_K),
        source_S=source,
        target_S=target,
        choice_S=_number_choices(trajectories, members, source, target, config.states) if plans else None,
        reward_S=_reward_of_steps(rewards, length_K),
        invalid_S=invalid_actions([trajectories[index] for index in members], config),
        state_N=tuple(nodes.names),
        group_N=np.array(nodes.groups, dtype=np.int64),
        goal_N=_mark(nodes.goals, len(nodes.names)),
        end_N=_mark(nodes.ends, len(nodes.names)),
        name_I=tuple((item.task_id, item.rollout_id) for item in trajectories),
        row_I=row_I,
        order_I=np.array(order, dtype=np.int64),
        keys=keys,
        skipped=tuple(skipped),
        notes=tuple(note for group in rewards for note in group.notes),
    )


def _number_choices(
    trajectories: Sequence[Trajectory],
    members: Iterable[int],
    source_S: Ints,
    target_S: Ints,
    config: StateConfig,
) -> Ints:
    """Number the actions of each state; unknown ones are told apart by where they led. Shape (S,)."""
    pattern = compile_action_pattern(config.action_pattern)
    actions = (step.action for index in members for step in trajectories[index].steps)
    table: defaultdict[tuple[int, str | int], int] = defaultdict(count().__next__)
    numbers = []
    for source, target, action in zip(source_S.tolist(), target_S.tolist(), actions, strict=True):
        key = action_key(action, pattern)
        numbers.append(table[source, target if key is None else key])
    return np.array(numbers, dtype=np.int64)


def _mark(indices: Sequence[int], size: int) -> Bools:
    marks = np.zeros(size, dtype=np.bool_)
    marks[list(indices)] = True
    return marks


def _reward_of_steps(rewards: Sequence[Rewards], length_K: Ints) -> Floats:
    end_K = np.cumsum(length_K)
    reward_S = np.zeros(end_K[-1])
    reward_S[end_K - 1] = [score for group in rewards for score in group.scores]
    for values, end in zip(
        chain.from_iterable(group.steps for group in rewards), end_K.tolist(), strict=True
    ):
        if values is not None:
            reward_S[end - len(values) : end] = values
    return reward_S


def _repeat_index(sizes: Sequence[int] | Ints) -> Ints:
    """0 repeated sizes[0] times, then 1 repeated sizes[1] times, …"""
    return np.repeat(np.arange(len(sizes)), sizes)
