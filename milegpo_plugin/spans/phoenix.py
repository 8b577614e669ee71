"""Phoenix exports → ``Span``: spans of the REST API, of data frames and of files; annotations.

Attributes keep the names of OpenInference. Phoenix nests them, or flattens too much: objects that
OpenInference writes as JSON strings (metadata, tool parameters) become strings again. The scope
is not exported. Annotations become reward spans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from milegpo_plugin import semconv
from milegpo_plugin.spans.otlp import span_status
from milegpo_plugin.spans.scores import score_span
from milegpo_plugin.spans.store import nanoseconds
from milegpo_plugin.types import JSON, Span, SpanEvent

_COLUMN: Final = "attributes."
_JSON_KEYS: Final = (semconv.OI_METADATA, semconv.OI_TOOL_PARAMETERS, semconv.OI_INVOCATION_PARAMETERS)


def is_phoenix_trace(document: JSON) -> bool:
    """Whether ``document`` is one trace with its spans."""
    spans = document.get("spans") if isinstance(document, dict) else None
    return isinstance(spans, list) and all(is_phoenix_span(span) for span in spans)


def is_phoenix_span(document: JSON) -> bool:
    """Whether ``document`` is one span, or one row of a data frame of spans."""
    return (
        isinstance(document, dict)
        and "span_kind" in document
        and ("context.span_id" in document or "span_id" in (document.get("context") or ()))
    )


def is_phoenix_annotation(document: JSON) -> bool:
    """Whether ``document`` is one annotation of a span, a trace or a session."""
    return (
        isinstance(document, dict)
        and "annotator_kind" in document
        and not {"span_id", "trace_id", "session_id"}.isdisjoint(document)
    )


def spans_of_phoenix_trace(document: Mapping[str, Any]) -> Iterator[Span]:
    """Every span of one trace, with the annotations on them.

    Raises:
        KeyError, TypeError, ValueError: a field is missing or wrong.
    """
    for record in document["spans"]:
        yield from spans_of_phoenix_span(record)


def spans_of_phoenix_span(record: Mapping[str, Any]) -> Iterator[Span]:
    """One span, and the annotations that the export put on it.

    Raises:
        KeyError, TypeError, ValueError: a field is missing or wrong.
    """
    context = record.get("context") or {}
    attributes = _attributes(record)
    attributes.setdefault(semconv.OI_SPAN_KIND, record["span_kind"])
    span = Span(
        trace_id=str(context.get("trace_id") or record["context.trace_id"]).lower(),
        span_id=str(context.get("span_id") or record["context.span_id"]).lower(),
        parent_id=str(record.get("parent_id") or "").lower() or None,
        name=record.get("name") or "",
        start_ns=nanoseconds(_time(record.get("start_time"))),
        end_ns=nanoseconds(_time(record.get("end_time"))),
        status=span_status(record.get("status_code")),
        status_message=record.get("status_message") or "",
        attributes=attributes,
        events=tuple(_event(event) for event in record.get("events") or ()),
    )
    yield span
    for annotation in record.get("annotations") or ():
        yield from spans_of_phoenix_annotation({"span_id": span.span_id, **annotation})


def spans_of_phoenix_annotation(record: Mapping[str, Any]) -> Iterator[Span]:
    """One annotation as a reward span. Labels without a score are no rewards.

    Raises:
        KeyError, TypeError, ValueError: a field is missing or wrong.
    """
    result = record.get("result") or record
    links = {name: record[name] for name in ("span_id", "trace_id") if record.get(name)}
    yield score_span(
        record.get("name") or record["annotation_name"],
        result.get("score"),
        nanoseconds(_time(record.get("created_at"))),
        links={name: str(target).lower() for name, target in links.items()},
        session=record.get("session_id"),
        key=record.get("id"),
    )


def _attributes(record: Mapping[str, Any]) -> dict[str, JSON]:
    """Flat attributes under their OpenInference names, whatever the export nested or flattened."""
    given = record.get("attributes")
    if not isinstance(given, Mapping):
        given = {key.removeprefix(_COLUMN): value for key, value in record.items() if key.startswith(_COLUMN)}
    flat: dict[str, JSON] = {}
    _flatten(given, "", flat)
    return _rejoin(flat)


def _flatten(value: JSON, key: str, flat: dict[str, JSON]) -> None:
    """Objects and lists of objects become dotted keys; null is no attribute."""
    if key in _JSON_KEYS and isinstance(value, Mapping | list):
        flat[key] = _dump(value)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            _flatten(item, f"{key}.{name}" if key else str(name), flat)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            _flatten(item, f"{key}.{index}", flat)
    elif value is not None:
        flat[key] = value


def _rejoin(flat: Mapping[str, JSON]) -> dict[str, JSON]:
    """``metadata.x`` and the like back into one JSON string."""
    objects: defaultdict[str, dict[str, JSON]] = defaultdict(dict)
    joined: dict[str, JSON] = {}
    for key, value in flat.items():
        owner = next((name for name in _JSON_KEYS if key.startswith(name + ".")), None)
        if owner is None:
            joined[key] = value
        else:
            objects[owner][key.removeprefix(owner + ".")] = value
    return {**joined, **{key: _dump(fields) for key, fields in objects.items()}}


def _event(event: Mapping[str, Any]) -> SpanEvent:
    return SpanEvent(
        event.get("name") or "", nanoseconds(_time(event.get("timestamp"))), event.get("attributes") or {}
    )


def _time(value: JSON) -> JSON:
    """Data frames write times in milliseconds."""
    return value * 1_000_000 if isinstance(value, int) and 10**11 < value < 10**14 else value


def _dump(value: JSON) -> str:
    return orjson.dumps(value, default=str).decode()
