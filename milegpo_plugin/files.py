"""Files at the edge: trajectories, rewards and tasks in; JSON lines out.

A line that cannot be read is reported by file and line, and the others are still read.
"""

from __future__ import annotations

import gzip
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import orjson
from pydantic import ValidationError

from milegpo_plugin.config import describe
from milegpo_plugin.errors import InputNotFoundError, TraceError
from milegpo_plugin.loading import require_file
from milegpo_plugin.spans import iter_items, read_spans
from milegpo_plugin.streams import rebuild_in_parts
from milegpo_plugin.trajectories import Reconstruction, ReconstructOptions, build_trajectories
from milegpo_plugin.types import Skipped, Trajectory

STDOUT = Path("-")
LARGE_BYTES = 64 * 2**20
"""Traces larger than this are rebuilt rollout by rollout; spans in memory take some ten times as much."""
_GZIP_FACTOR = 10


@dataclass(frozen=True, slots=True)
class Input:
    """What the named files hold, and what could not be used.

    ``counts`` has spans, model_calls, tool_runs, rewards and what was merged or unknown; it is
    empty when there were no traces.
    """

    trajectories: list[Trajectory]
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: Mapping[str, int] = field(default_factory=dict)


def keep_whole(trajectory: Trajectory) -> Trajectory:
    """What is kept of a rollout by default: all of it."""
    return trajectory


def read_input(
    paths: Sequence[Path],
    *,
    logs: Sequence[Path] = (),
    options: ReconstructOptions | None = None,
    each: Callable[[Trajectory], Trajectory] = keep_whole,
) -> Input:
    """Trajectories from traces, from ``trajectories.jsonl`` files, or from both.

    ``each`` is given every rollout as soon as it is there, and what it returns is kept: who writes
    the rollouts of a large trace need not hold them.

    Raises:
        InputNotFoundError: a path does not exist.
        TraceError: nothing usable is in them.
    """
    skipped: list[Skipped] = []
    ready = [path for path in paths if holds_trajectories(path)]
    traces = [path for path in paths if path not in ready]
    found = [t for path in ready for t in read_trajectories(path, skipped.append)]
    found, notes = _apply_rewards(found, options.rewards if options else {})
    found = [*map(each, found)]
    counts: dict[str, int] = {}
    if traces or logs:
        rebuilt = _rebuild(traces, logs, options or ReconstructOptions(), skipped.append, each)
        found.extend(rebuilt.trajectories)
        skipped.extend(rebuilt.skipped)
        counts = dict(rebuilt.counts) if rebuilt.counts.get("spans") else {}
    if not found:
        raise TraceError(nothing_found(paths, skipped, counts.get("spans", 0)))
    return Input(found, skipped, notes, counts)


def _rebuild(
    traces: Sequence[Path],
    logs: Sequence[Path],
    options: ReconstructOptions,
    on_problem: Callable[[Skipped], None],
    each: Callable[[Trajectory], Trajectory],
) -> Reconstruction:
    """All at once, or part after part when the files are large."""
    if sum(plain_size(path) for path in (*traces, *logs)) > LARGE_BYTES:
        items = iter_items(traces, logs, on_problem=on_problem)
        return rebuild_in_parts(items, options, on_problem=on_problem, each=each)
    whole = build_trajectories(read_spans(traces, logs, on_problem=on_problem), options)
    return replace(whole, trajectories=[*map(each, whole.trajectories)])


def plain_size(path: Path) -> int:
    """About how many bytes the file holds; JSON of spans shrinks to a tenth."""
    size = require_file(path).stat().st_size
    return size * _GZIP_FACTOR if path.suffix == ".gz" else size


def holds_trajectories(path: Path) -> bool:
    """True when the first readable line of the file is a trajectory."""
    for _, line in _lines(path):
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        return isinstance(value, dict) and "steps" in value and "rollout_id" in value
    return False


def read_trajectories(path: Path, on_problem: Callable[[Skipped], None]) -> Iterator[Trajectory]:
    """The trajectories of one file; every bad line goes to ``on_problem``."""
    for number, line in _lines(path):
        try:
            yield Trajectory.model_validate(orjson.loads(line))
        except orjson.JSONDecodeError as error:
            on_problem(Skipped("line", f"{path}:{number}", f"not valid JSON: {error}"))
        except ValidationError as error:
            on_problem(Skipped("line", f"{path}:{number}", f"not a trajectory: {describe(error)}"))


def read_rewards(path: Path) -> dict[str, float]:
    """``{"rollout_id", "reward"}`` lines as a mapping.

    Raises:
        TraceError: a line lacks one of the two, or the reward is not a finite number.
    """
    rewards: dict[str, float] = {}
    for number, record in read_records(path):
        rollout_id, reward = record.get("rollout_id"), record.get("reward")
        if (
            not isinstance(rollout_id, str)
            or not isinstance(reward, int | float)
            or not math.isfinite(reward)
        ):
            raise TraceError(
                f"{path}:{number}: a reward line must be "
                f'{{"rollout_id": text, "reward": number}}, got {record!r}'
            )
        rewards[rollout_id] = float(reward)
    return rewards


def read_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line.

    Raises:
        TraceError: a line is not a JSON object.
    """
    for number, line in _lines(path):
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise TraceError(f"{path}:{number}: not valid JSON: {error}") from error
        if not isinstance(record, dict):
            raise TraceError(f"{path}:{number}: must be a JSON object, got {type(record).__name__}")
        yield number, record


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> int:
    """One JSON object a line, to a file or to standard output (``-``); returns the count.

    Raises:
        InputNotFoundError: the folder of ``path`` does not exist.
    """
    if path == STDOUT:
        return _write_lines(sys.stdout.buffer, records)
    if not path.parent.is_dir():
        raise InputNotFoundError(f"{path.parent}: no such folder; create it, or choose another -o")
    with _open(path, "wb") as stream:
        return _write_lines(stream, records)


class TrajectoryWriter:
    """Writes rollouts one by one, to a file or to standard output (``-``).

    The file is made with the first rollout, or when the writer is closed without an error.

    Raises:
        InputNotFoundError: the folder of ``path`` does not exist.
    """

    def __init__(self, path: Path) -> None:
        if path != STDOUT and not path.parent.is_dir():
            raise InputNotFoundError(f"{path.parent}: no such folder; create it, or choose another -o")
        self._path = path
        self._stream: IO[bytes] | None = None
        self.count = 0

    def write(self, trajectory: Trajectory) -> None:
        """Append one rollout."""
        self.count += _write_lines(self._opened(), trajectory_records([trajectory]))

    def __enter__(self) -> TrajectoryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stream = self._opened() if error is None else self._stream
        if stream is not None and stream is not sys.stdout.buffer:
            stream.close()

    def _opened(self) -> IO[bytes]:
        if self._stream is None:
            self._stream = sys.stdout.buffer if self._path == STDOUT else _open(self._path, "wb")
        return self._stream


def append_records(path: Path, records: Iterable[Mapping[str, Any]]) -> int:
    """One JSON object a line at the end of a file; returns the count."""
    with path.open("ab") as stream:
        return _write_lines(stream, records)


def trajectory_records(trajectories: Iterable[Trajectory]) -> Iterator[dict[str, Any]]:
    """Trajectories as lines of ``trajectories.jsonl``; unknown values are null."""
    for trajectory in trajectories:
        yield trajectory.model_dump(mode="json")


def _write_lines(stream: IO[bytes], records: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    for record in records:
        stream.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY))
        count += 1
    return count


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with _open(require_file(path), "rb") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield number, line


def _open(path: Path, mode: str) -> IO[bytes]:
    return gzip.open(path, mode) if path.suffix == ".gz" else path.open(mode)  # type: ignore[return-value]


def _apply_rewards(
    trajectories: list[Trajectory], rewards: Mapping[str, float]
) -> tuple[list[Trajectory], list[str]]:
    """Rewards of the user's file win over what the trajectories carry."""
    if not rewards:
        return trajectories, []
    unused = rewards.keys() - {t.rollout_id for t in trajectories}
    return [apply_reward(t, rewards) for t in trajectories], unused_rewards(
        len(unused)
    ) if trajectories else []


def apply_reward(trajectory: Trajectory, rewards: Mapping[str, float]) -> Trajectory:
    """The rollout with the reward that the user's file gives it, if it does; success is then unknown."""
    reward = rewards.get(trajectory.rollout_id)
    return trajectory if reward is None else trajectory.model_copy(update={"reward": reward, "success": None})


def unused_rewards(count: int) -> list[str]:
    """What to note when so many rewards name no rollout."""
    return [f"{count} rewards name rollouts that are not in the trajectories"] if count else []


def nothing_found(paths: Sequence[Path], skipped: Sequence[Skipped], spans: int) -> str:
    """The line that refuses files without a single rollout."""
    names = ", ".join(str(path) for path in paths)
    if skipped:
        first = skipped[0]
        return (
            f"{names}: no rollout could be read; first of {len(skipped)} problems: {first.id}: {first.reason}"
        )
    what = f"{spans} spans and no model call among them" if spans else "no spans and no trajectories"
    return f"{names}: {what}; export the spans of the client that calls the model"
