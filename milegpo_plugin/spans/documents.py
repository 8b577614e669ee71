"""One JSON document → spans and log records, whatever form it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from milegpo_plugin.errors import TraceError
from milegpo_plugin.spans.agl_events import (
    is_agl_event,
    is_agl_rollout,
    spans_of_agl_event,
    spans_of_agl_rollout,
)
from milegpo_plugin.spans.langfuse import (
    is_langfuse_observation,
    is_langfuse_score,
    is_langfuse_trace,
    spans_of_langfuse_observation,
    spans_of_langfuse_score,
    spans_of_langfuse_trace,
)
from milegpo_plugin.spans.otlp import LogRecord, is_logs_request, is_trace_request, logs_of, spans_of
from milegpo_plugin.spans.phoenix import (
    is_phoenix_annotation,
    is_phoenix_span,
    is_phoenix_trace,
    spans_of_phoenix_annotation,
    spans_of_phoenix_span,
    spans_of_phoenix_trace,
)
from milegpo_plugin.spans.store import is_flat_span, span_from_record
from milegpo_plugin.types import JSON, Span


class DocumentReader(NamedTuple):
    """One form of a JSON document: how to tell it, and how to read it."""

    form: str
    recognises: Callable[[JSON], bool]
    read: Callable[[JSON], Iterable[Span | LogRecord]]


def is_page(document: JSON) -> bool:
    """Whether ``document`` is one page of a list that an API returns."""
    return isinstance(document, dict) and isinstance(document.get("data"), list)


READERS: Final[tuple[DocumentReader, ...]] = (
    DocumentReader("OTLP trace request", is_trace_request, spans_of),
    DocumentReader("OTLP logs request", is_logs_request, logs_of),
    DocumentReader("Phoenix span", is_phoenix_span, spans_of_phoenix_span),
    DocumentReader("Phoenix trace", is_phoenix_trace, spans_of_phoenix_trace),
    DocumentReader("Phoenix annotation", is_phoenix_annotation, spans_of_phoenix_annotation),
    DocumentReader("store or SDK span", is_flat_span, lambda record: (span_from_record(record),)),
    DocumentReader("Agent Lightning event", is_agl_event, spans_of_agl_event),
    DocumentReader("Agent Lightning rollout", is_agl_rollout, spans_of_agl_rollout),
    DocumentReader("Langfuse trace", is_langfuse_trace, spans_of_langfuse_trace),
    DocumentReader("Langfuse observation", is_langfuse_observation, spans_of_langfuse_observation),
    DocumentReader("Langfuse score", is_langfuse_score, spans_of_langfuse_score),
    DocumentReader("page of an API", is_page, lambda page: read_document(page["data"])),
)


def read_document(document: JSON) -> Iterator[Span | LogRecord]:
    """The spans and log records of one JSON document, or of a list of them.

    Raises:
        TraceError: no reader knows the form, or a field is missing or wrong.
    """
    if isinstance(document, list):
        for item in document:
            yield from read_document(item)
        return
    reader = next((reader for reader in READERS if reader.recognises(document)), None)
    if reader is None:
        forms = ", ".join(reader.form for reader in READERS)
        raise TraceError(f"not a trace: expected one of: {forms}; got {_shape(document)}")
    try:
        yield from reader.read(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TraceError(f"bad {reader.form}: {type(error).__name__}: {error}") from error


def _shape(document: JSON) -> str:
    if isinstance(document, dict):
        return f"an object with {', '.join(sorted(document)[:5]) or 'no fields'}"
    return type(document).__name__
