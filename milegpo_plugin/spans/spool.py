"""Spans and log records on disk, by trace: for traces too many to hold in memory."""

from __future__ import annotations

import pickle
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from types import TracebackType

from milegpo_plugin.spans.otlp import LogRecord
from milegpo_plugin.types import Span


class Spool:
    """A temporary file that vanishes when it is closed. Nobody else can write to it."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="milegpo-")  # noqa: SIM115  # closed by __exit__
        self._places: defaultdict[str, list[int]] = defaultdict(list)

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, item: Span | LogRecord) -> None:
        """Append one item; not after the first ``take``."""
        self._places[item.trace_id].append(self._file.tell())
        pickle.dump(item, self._file, protocol=pickle.HIGHEST_PROTOCOL)

    def take(self, trace_ids: Iterable[str]) -> Iterator[Span | LogRecord]:
        """The items of the named traces, trace by trace in the order in which they were added."""
        for trace_id in trace_ids:
            for place in self._places.get(trace_id, ()):
                self._file.seek(place)
                yield pickle.load(self._file)
