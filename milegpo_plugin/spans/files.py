"""Trace files → spans: JSON lines, whole JSON files and protobuf, plain or gzipped."""

from __future__ import annotations

import gzip
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Final, TypeAlias, cast

import orjson
from google.protobuf.message import DecodeError

from milegpo_plugin.errors import InputNotFoundError, TraceError
from milegpo_plugin.spans.documents import read_document
from milegpo_plugin.spans.otlp import LogRecord
from milegpo_plugin.spans.protobuf import decode_logs_request, decode_trace_request, split_messages
from milegpo_plugin.types import JSON, Skipped, Span, SpanEvent

OnProblem: TypeAlias = Callable[[Skipped], None]
Decode: TypeAlias = Callable[[bytes], JSON]

_GZIP: Final = b"\x1f\x8b"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_NOT_IN_TEXT: Final = frozenset(range(32)) - frozenset(b"\t\n\v\f\r")
_SNIFFED_BYTES: Final = 256


def read_spans(paths: Sequence[Path], logs: Sequence[Path] = (), *, on_problem: OnProblem) -> list[Span]:
    """Every span of the files, with the log records of all of them on their spans.

    Args:
        paths: OTLP JSON lines, whole JSON files, OTLP protobuf, or ``.agl_spans.jsonl``.
        logs: OTLP log records (JSON or protobuf) that event-based instrumentations need.
        on_problem: told of every line that cannot be read, and of records without a span.

    Raises:
        InputNotFoundError: a path does not exist. Nothing is read then.
    """
    spans: list[Span] = []
    records: list[LogRecord] = []
    for item in iter_items(paths, logs, on_problem=on_problem):
        if isinstance(item, Span):
            spans.append(item)
        else:
            records.append(item)
    return attach_logs(spans, records, on_problem=on_problem)


def iter_items(
    paths: Sequence[Path], logs: Sequence[Path] = (), *, on_problem: OnProblem
) -> Iterator[Span | LogRecord]:
    """What ``read_spans`` reads, one request at a time, with log records on their own.

    Raises:
        InputNotFoundError: a path does not exist. Nothing is read then.
    """
    for path in (*paths, *logs):
        _require(path)
    for path in paths:
        yield from _items(path, decode_trace_request, on_problem)
    for path in logs:
        yield from _items(path, decode_logs_request, on_problem)


def iter_spans(path: Path, *, on_problem: OnProblem) -> Iterator[Span]:
    """The spans of one file, one request at a time; log records in it are passed over.

    Raises:
        InputNotFoundError: the file does not exist.
    """
    _require(path)
    items = _items(path, decode_trace_request, on_problem)
    yield from (item for item in items if isinstance(item, Span))


def attach_logs(spans: list[Span], records: Sequence[LogRecord], *, on_problem: OnProblem) -> list[Span]:
    """Log records on their spans, in order of time, then of arrival."""
    if not records:
        return spans
    events: dict[tuple[str, str], list[SpanEvent]] = defaultdict(list)
    for record in records:
        events[record.trace_id, record.span_id].append(record.event)
    attached = [_with_logs(span, events.get((span.trace_id, span.span_id), ())) for span in spans]
    for key in events.keys() - {(span.trace_id, span.span_id) for span in spans}:
        count = len(events[key])
        on_problem(Skipped("log", key[1], f"{count} log records name a span that is not in the traces"))
    return attached


def _with_logs(span: Span, events: Sequence[SpanEvent]) -> Span:
    if not events:
        return span
    return replace(span, logs=(*span.logs, *sorted(events, key=lambda event: event.time_ns)))


def _require(path: Path) -> None:
    if not path.is_file():
        raise InputNotFoundError(f"{path}: no such file")


def _items(path: Path, decode: Decode, on_problem: OnProblem) -> Iterator[Span | LogRecord]:
    for place, document in _documents(path, decode, on_problem):
        try:
            yield from read_document(document)
        except TraceError as error:
            on_problem(Skipped("line", place, str(error)))


def _documents(path: Path, decode: Decode, on_problem: OnProblem) -> Iterator[tuple[str, JSON]]:
    """Parsed documents with the place of each, for messages: ``file`` or ``file:line``."""
    with _open(path) as stream:
        try:
            if _is_text(stream):
                yield from _json_documents(path, stream, on_problem)
            else:
                yield from _protobuf_documents(path, stream, decode, on_problem)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            on_problem(Skipped("file", str(path), f"the compressed data is damaged: {error}"))


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as stream:
        compressed = stream.read(2) == _GZIP
    return cast(IO[bytes], gzip.open(path, "rb")) if compressed else path.open("rb")


def _is_text(stream: IO[bytes]) -> bool:
    """Protobuf has control characters among its first tags and lengths; JSON has none."""
    head = stream.read(_SNIFFED_BYTES)
    stream.seek(0)
    return _NOT_IN_TEXT.isdisjoint(head)


def _json_documents(path: Path, stream: IO[bytes], on_problem: OnProblem) -> Iterator[tuple[str, JSON]]:
    """JSON lines; or one document over many lines, when the first line alone is none."""
    if not _is_json(stream.readline()):
        stream.seek(0)
        whole = stream.read()
        if whole.strip() and _is_json(whole):
            yield str(path), _parse(whole)
            return
    stream.seek(0)
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            yield f"{path}:{number}", _parse(line)
        except orjson.JSONDecodeError as error:
            on_problem(Skipped("line", f"{path}:{number}", f"not JSON: {error}"))


def _parse(data: bytes) -> JSON:
    return orjson.loads(data.removeprefix(_BYTE_ORDER_MARK))


def _is_json(data: bytes) -> bool:
    try:
        _parse(data)
    except orjson.JSONDecodeError:
        return False
    return True


def _protobuf_documents(
    path: Path, stream: IO[bytes], decode: Decode, on_problem: OnProblem
) -> Iterator[tuple[str, JSON]]:
    number = 1
    try:
        for message in split_messages(stream):
            yield f"{path}: message {number}", decode(message)
            number += 1
    except DecodeError as error:
        on_problem(Skipped("line", f"{path}: message {number}", f"not OTLP protobuf: {error}"))
