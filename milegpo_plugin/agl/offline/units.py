"""What one reader reads: a file of trajectories, or the traces; and the rows that come out of it.

A row is one rollout: the part that its task belongs to, and its JSON. The last row of a unit is the
account of what was read. Files are read where the row is made, so they must be visible there.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.errors import ConfigError, MilegpoError
from milegpo_plugin.files import apply_reward, holds_trajectories, read_input, read_trajectories
from milegpo_plugin.groups import has_outcome
from milegpo_plugin.loading import require_file
from milegpo_plugin.report.tables import count_flags
from milegpo_plugin.spans import iter_items
from milegpo_plugin.streams import outline
from milegpo_plugin.trajectories import ReconstructOptions
from milegpo_plugin.types import Skipped, Span, Trajectory

ACCOUNT: Final = -1
"""The part of rows that hold accounts instead of rollouts."""
_TOKENS: Final = {"steps": {"__all__": {"prompt_token_ids", "response_token_ids", "logprobs"}}}

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Unit:
    """Files that are read together."""

    paths: tuple[Path, ...]
    logs: tuple[Path, ...] = ()
    traces: bool = False
    alone: bool = False  # its rollouts have no spans in other units


@dataclass(slots=True)
class Account:
    """What was read of one unit, without the rollouts. ``owned`` are traces and rollouts of no other unit."""

    rollouts: int = 0
    with_outcome: int = 0
    spans: int = 0
    ready: int = 0
    rewarded: list[str] = field(default_factory=list)
    owned: list[str] = field(default_factory=list)
    flags: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def plan_units(paths: Sequence[Path], logs: Sequence[Path], *, whole_traces: bool) -> list[Unit]:
    """One unit a file of trajectories; one for all traces, or one a trace file with ``whole_traces``.

    Raises:
        InputNotFoundError: a path does not exist.
        ConfigError: there are log records, and ``whole_traces`` would part them from their spans.
    """
    files = [require_file(path).absolute() for path in paths]
    records = tuple(require_file(path).absolute() for path in logs)
    ready = [path for path in files if _is_ready(path)]
    traces = tuple(path for path in files if path not in ready)
    if whole_traces and records:
        raise ConfigError(
            "--whole-traces: must be left out with --logs: log records are joined to spans of any file"
        )
    units = [Unit((path,)) for path in ready]
    if whole_traces:
        return units + [Unit((path,), traces=True, alone=True) for path in traces]
    return units + ([Unit(traces, records, traces=True)] if traces or records else [])


def _is_ready(path: Path) -> bool:
    """Whether the file is to be read as trajectories; one that is broken is reported as such."""
    try:
        return holds_trajectories(path)
    except (OSError, EOFError, zlib.error):
        return True


class UnitReader:
    """Reads units of one job.

    Args:
        config: of the credit; a state function of the user's is given the tokens of a step, too.
        options: how spans become trajectories, and the rewards of the user's file.
        parts: how many parts there are.
    """

    def __init__(self, config: CreditConfig, options: ReconstructOptions, parts: int) -> None:
        self._options = options
        self._parts = parts
        self._left_out = None if config.states.function is not None else _TOKENS

    def rows(self, unit: Unit) -> Iterator[Row]:
        """A row for every rollout, then the account. A file that breaks off is reported, not raised."""
        account = Account()
        try:
            yield from self._rebuild(unit, account) if unit.traces else self._read(unit, account)
        except Exception as error:
            names = ", ".join(map(str, unit.paths))
            reason = str(error) if isinstance(error, MilegpoError) else f"{type(error).__name__}: {error}"
            account.skipped.append(Skipped("file", names, reason))
        yield {"part": ACCOUNT, "rollout": orjson.dumps(account)}

    def _read(self, unit: Unit, account: Account) -> Iterator[Row]:
        rewards = self._options.rewards
        for path in unit.paths:
            for trajectory in read_trajectories(path, account.skipped.append):
                if trajectory.rollout_id in rewards:
                    account.rewarded.append(trajectory.rollout_id)
                account.ready += 1
                yield from self._row(apply_reward(trajectory, rewards), account)

    def _rebuild(self, unit: Unit, account: Account) -> Iterator[Row]:
        """The rollouts are kept as JSON until the last is there: spans of any file may be of any rollout."""
        rows: list[Row] = []

        def keep(trajectory: Trajectory) -> Trajectory:
            rows.extend(self._row(trajectory, account))
            return outline(trajectory)

        account.owned = sorted(_names_in(unit.paths)) if unit.alone else []
        found = read_input(unit.paths, logs=unit.logs, options=self._options, each=keep)
        account.spans = found.counts.get("spans", 0)
        account.skipped.extend(found.skipped)
        account.notes.extend(found.notes)
        if unit.alone:
            account.owned = sorted({*account.owned, *(item.rollout_id for item in found.trajectories)})
        yield from rows

    def _row(self, trajectory: Trajectory, account: Account) -> Iterator[Row]:
        """Count the rollout, and make its row if its texts can be written."""
        account.rollouts += 1
        account.with_outcome += has_outcome(trajectory)
        account.flags.update(count_flags([trajectory]))
        try:
            yield {"part": self._part_of(trajectory), "rollout": encode(trajectory, self._left_out)}
        except ValueError as error:
            account.skipped.append(Skipped("rollout", trajectory.rollout_id, f"cannot be written: {error}"))

    def _part_of(self, trajectory: Trajectory) -> int:
        return zlib.crc32(trajectory.task_id.encode()) % self._parts


def _names_in(paths: Sequence[Path]) -> set[str]:
    """The traces of the files, and the rollouts that a platform names."""
    names: set[str] = set()
    for item in iter_items(paths, on_problem=_told_before):
        names.add(item.trace_id)
        if isinstance(item, Span) and item.rollout_id is not None:
            names.add(item.rollout_id)
    return names


def _told_before(problem: Skipped) -> None:
    """Problems of a file are told when its rollouts are read."""


def encode(trajectory: Trajectory, left_out: Mapping[str, Any] | None) -> bytes:
    """One rollout as JSON, with every float as it is: pydantic would write null for what is not finite."""
    rewards = [trajectory.reward, *(step.reward for step in trajectory.steps)]
    if all(reward is None or isfinite(reward) for reward in rewards):
        return trajectory.model_dump_json(exclude=left_out).encode()
    return json.dumps(trajectory.model_dump(mode="json", exclude=left_out)).encode()


def decode(line: bytes) -> Trajectory:
    """The rollout of :func:`encode`."""
    return Trajectory.model_validate_json(line)
