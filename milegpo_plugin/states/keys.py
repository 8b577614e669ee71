"""One canonical key per step: credit exists only where rollouts meet in the same state.

A key is readable text. A given ``state`` is kept verbatim; a missing one is computed from
what is new since the policy's last answer: tool results and user messages. Roles, call ids,
response ids and message fields other than the content never enter a key. Keys mean something
within one task only; merging of similar texts never looks across tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from milegpo_plugin.config import StateConfig
from milegpo_plugin.states.clusters import merge_similar
from milegpo_plugin.states.reader import StateReader
from milegpo_plugin.types import Trajectory

HISTORY_SEPARATOR: Final = "\n→ "


@dataclass(frozen=True, slots=True)
class StateKeys:
    """Keys in the order of the trajectories: one per step, and one for the end.

    ``final`` is None where the end of the rollout was not recorded.
    """

    steps: list[list[str]]
    final: list[str | None]


def state_keys(
    trajectories: Sequence[Trajectory],
    config: StateConfig,
    *,
    check: Callable[[StateReader], None] = StateReader.check_pattern,
) -> StateKeys:
    """The state of every step and of every end, in input order.

    The end of a rollout has the key of a step that shows the same text. ``check`` is called when all
    steps are read.

    Raises:
        ConfigError: the pattern matches the text of no step, or the user's function fails.
    """
    reader = StateReader(config)
    steps = [reader.step_keys(trajectory) for trajectory in trajectories]
    check(reader)
    final = [reader.final_key(trajectory) for trajectory in trajectories]
    for members in _tasks(trajectories) if reader.has_computed else ():
        _rename_computed(trajectories, members, StateKeys(steps, final), reader, config.similarity)
    if config.history > 1:
        final = [_last(keys, end, config.history) for keys, end in zip(steps, final, strict=True)]
        steps = [_histories(keys, config.history) for keys in steps]
    return StateKeys(steps, final)


def _tasks(trajectories: Sequence[Trajectory]) -> list[list[int]]:
    """Indices of the trajectories of each task."""
    members: dict[str, list[int]] = {}
    for index, trajectory in enumerate(trajectories):
        members.setdefault(trajectory.task_id, []).append(index)
    return list(members.values())


def _rename_computed(
    trajectories: Sequence[Trajectory],
    members: list[int],
    keys: StateKeys,
    reader: StateReader,
    similarity: float | None,
) -> None:
    """Give computed keys the name of the given state with the same text, or of their cluster."""
    given = _given_states(trajectories, members)
    if similarity is None and not given:
        return
    computed = _computed_keys(trajectories, members, keys)
    if computed.keys() <= given:
        return
    names = reader.names_of(given)
    if similarity is not None:
        counts = Counter({names.get(key, key): count for key, count in computed.items()})
        merged = merge_similar(counts, given, similarity)
        names = {key: merged[names.get(key, key)] for key in computed}
    for index in members:
        _rename(trajectories[index], index, keys, names)


def _given_states(trajectories: Sequence[Trajectory], members: list[int]) -> set[str]:
    given = {step.state for index in members for step in trajectories[index].steps if step.state is not None}
    return given | {end for index in members if (end := trajectories[index].final_state) is not None}


def _computed_keys(trajectories: Sequence[Trajectory], members: list[int], keys: StateKeys) -> Counter[str]:
    counts: Counter[str] = Counter()
    for index in members:
        steps = trajectories[index].steps
        counts.update(key for key, step in zip(keys.steps[index], steps, strict=True) if step.state is None)
        end = keys.final[index]
        if end is not None and trajectories[index].final_state is None:
            counts[end] += 1
    return counts


def _rename(trajectory: Trajectory, index: int, keys: StateKeys, names: dict[str, str]) -> None:
    row = keys.steps[index]
    for position, step in enumerate(trajectory.steps):
        if step.state is None:
            row[position] = names.get(row[position], row[position])
    end = keys.final[index]
    if end is not None and trajectory.final_state is None:
        keys.final[index] = names.get(end, end)


def _histories(keys: list[str], length: int) -> list[str]:
    return [HISTORY_SEPARATOR.join(keys[max(end - length, 0) : end]) for end in range(1, len(keys) + 1)]


def _last(keys: list[str], end: str | None, length: int) -> str | None:
    return None if end is None else HISTORY_SEPARATOR.join([*keys[-(length - 1) :], end])
