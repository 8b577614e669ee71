"""Live intake: spans arrive over OTLP/HTTP, trajectories are written as rollouts fall quiet.

A rollout is done when nothing has arrived for it for a while: spans come when they end, children
before parents, in batches of several processes, so nothing else tells. Each span is read once
when it arrives, to see what it belongs with, and once when its rollout is done.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from milegpo_plugin.errors import ConfigError, InputNotFoundError
from milegpo_plugin.files import append_records, trajectory_records
from milegpo_plugin.spans import LogRecord, OtlpServer
from milegpo_plugin.streams import rebuild_part, with_logs
from milegpo_plugin.trajectories import Partition, Reconstruction, ReconstructOptions
from milegpo_plugin.types import Skipped, Span

_LOGGER = logging.getLogger(__name__)

FILE_NAME: Final = "trajectories.jsonl"
_CHECKS_IN_IDLE: Final = 10
"""How often the quiet time is looked at within its length."""
_LONGEST_WAIT_S: Final = 1.0
_REMEMBERED_TRACES: Final = 100_000

Item: TypeAlias = Span | LogRecord


@dataclass(slots=True)
class _Pending:
    """What has arrived of one trace, and when it last did (seconds of a monotonic clock)."""

    items: list[Item] = field(default_factory=list)
    fresh: list[Item] = field(default_factory=list)
    arrived_s: float = 0.0


class RolloutBuffer:
    """Spans and log records, until the rollouts that they can be of have been quiet long enough.

    Args:
        idle_s: seconds without anything new after which a rollout counts as done.
    """

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._traces: defaultdict[str, _Pending] = defaultdict(_Pending)
        self._partition = Partition()

    def add(self, items: Iterable[Item], now_s: float) -> None:
        """Keep what has just arrived."""
        for item in items:
            pending = self._traces[item.trace_id]
            pending.items.append(item)
            pending.fresh.append(item)
            pending.arrived_s = now_s

    def take_quiet(self, now_s: float) -> list[list[Item]]:
        """What is done, part by part: nothing has arrived for any trace of the part for a while."""
        if not self._traces:
            return []
        self._read_fresh()
        quiet = [part for part in self._partition.parts() if self._last_arrival(part) <= now_s - self._idle_s]
        return [self._take(part) for part in quiet]

    def take_all(self) -> list[list[Item]]:
        """Everything, done or not."""
        self._read_fresh()
        return [self._take(part) for part in self._partition.parts()]

    def _read_fresh(self) -> None:
        """Read new spans; those of a trace with new log records again, with their records."""
        for trace_id, pending in self._traces.items():
            has_records = any(isinstance(item, LogRecord) for item in pending.fresh)
            self._partition.mention(trace_id)
            for span in with_logs(pending.items if has_records else pending.fresh, _tell_later):
                self._partition.add(span)
            pending.fresh.clear()

    def _last_arrival(self, part: Sequence[str]) -> float:
        return max(self._traces[trace_id].arrived_s for trace_id in part)

    def _take(self, part: Sequence[str]) -> list[Item]:
        self._partition.forget(part)
        return [item for trace_id in part for item in self._traces.pop(trace_id).items]


@dataclass(frozen=True, slots=True)
class Received:
    """One part that was written. ``went_on`` says that some of its traces had been written before."""

    result: Reconstruction
    went_on: bool


class Receiver:
    """An endpoint, the buffer behind it, and the file that rollouts are appended to.

    Args:
        folder: where ``trajectories.jsonl`` grows; made if it is not there.
        host: interface to listen on.
        port: 0 takes a free one.
        idle_s: quiet seconds after which a rollout is written.
        options: how spans become trajectories.
        tell: told of everything that was written, on the thread of :meth:`run`.

    Raises:
        ConfigError: nothing can listen there.
        InputNotFoundError: the parent of ``folder`` does not exist.
    """

    def __init__(
        self,
        folder: Path,
        *,
        host: str,
        port: int,
        idle_s: float,
        options: ReconstructOptions,
        tell: Callable[[Received], None],
    ) -> None:
        if not folder.absolute().parent.is_dir():
            raise InputNotFoundError(f"{folder.parent}: no such folder; create it, or choose another -o")
        folder.mkdir(exist_ok=True)
        self._file = folder / FILE_NAME
        self._options = options
        self._tell = tell
        self._inbox: queue.SimpleQueue[list[Item]] = queue.SimpleQueue()
        self._buffer = RolloutBuffer(idle_s)
        self._wait_s = min(idle_s / _CHECKS_IN_IDLE, _LONGEST_WAIT_S)
        self._written: dict[str, None] = {}
        try:
            self._server = OtlpServer(host, port, self._inbox.put)
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error}; choose another --port") from error

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.server_port

    def run(self, stop: threading.Event) -> None:
        """Receive and write until ``stop`` is set; then write what is left, done or not."""
        thread = threading.Thread(target=self._server.serve_forever, name="otlp", daemon=True)
        thread.start()
        try:
            while not stop.is_set():
                self._drain(self._wait_s)
                self._write(self._buffer.take_quiet(time.monotonic()))
        finally:
            self._server.refuse()
            self._server.shutdown()
            self._server.server_close()
            thread.join()
            self._drain(0.0)
            self._write(self._buffer.take_all())

    def _drain(self, wait_s: float) -> None:
        """Move what has arrived into the buffer; wait for something if there is nothing yet."""
        try:
            items = self._inbox.get(timeout=wait_s) if wait_s else self._inbox.get_nowait()
            while True:
                self._buffer.add(items, time.monotonic())
                items = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _write(self, parts: Iterable[list[Item]]) -> None:
        for items in parts:
            problems: list[Skipped] = []
            result = rebuild_part(items, self._options, on_problem=problems.append)
            append_records(self._file, trajectory_records(result.trajectories))
            result.skipped.extend(problems)
            traces = dict.fromkeys(item.trace_id for item in items)
            self._tell(Received(result, not self._written.keys().isdisjoint(traces)))
            self._remember(traces)

    def _remember(self, traces: Iterable[str]) -> None:
        """Keep the newest traces that were written, to notice when one goes on."""
        self._written.update(dict.fromkeys(traces))
        for trace_id in list(_excess(self._written)):
            del self._written[trace_id]


def _excess(traces: dict[str, None]) -> Iterator[str]:
    count = len(traces) - _REMEMBERED_TRACES
    for _, trace_id in zip(range(count), traces, strict=False):
        yield trace_id


def _tell_later(problem: Skipped) -> None:
    """Records whose span has not arrived yet are no problem until the rollout is done."""
    _LOGGER.debug("waiting: %s %s: %s", problem.kind, problem.id, problem.reason)
