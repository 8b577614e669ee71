"""OTLP requests in their JSON form → spans and log records (opentelemetry-proto 1.x, JSON encoding)."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from milegpo_plugin import semconv
from milegpo_plugin.types import JSON, Span, SpanEvent, SpanLink

_KINDS: Final = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_STATUSES: Final = ("UNSET", "OK", "ERROR")
_HEX_LENGTHS: Final = (16, 32)
_NAMES_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A log record and the span it belongs to."""

    trace_id: str
    span_id: str
    event: SpanEvent


def is_trace_request(document: JSON) -> bool:
    """Whether ``document`` is an ExportTraceServiceRequest (or TracesData)."""
    return isinstance(document, dict) and "resourceSpans" in document


def is_logs_request(document: JSON) -> bool:
    """Whether ``document`` is an ExportLogsServiceRequest (or LogsData)."""
    return isinstance(document, dict) and "resourceLogs" in document


def spans_of(request: Mapping[str, Any]) -> Iterator[Span]:
    """Every span of one trace request, in the order of the request."""
    for resource_spans in request.get("resourceSpans") or ():
        resource = attributes_of(resource_spans.get("resource") or {})
        for scope_spans in resource_spans.get("scopeSpans") or ():
            scope = (scope_spans.get("scope") or {}).get("name") or ""
            for span in scope_spans.get("spans") or ():
                yield _span(span, scope, resource)


def logs_of(request: Mapping[str, Any]) -> Iterator[LogRecord]:
    """Every log record of one logs request that names a span, in the order of the request."""
    for resource_logs in request.get("resourceLogs") or ():
        for scope_logs in resource_logs.get("scopeLogs") or ():
            for record in scope_logs.get("logRecords") or ():
                if record.get("spanId"):
                    yield LogRecord(hex_id(record["traceId"]), hex_id(record["spanId"]), _log_event(record))


def attributes_of(owner: Mapping[str, Any]) -> dict[str, JSON]:
    """The ``attributes`` list of a resource, span, event or record as a plain mapping."""
    return {item["key"]: plain_value(item.get("value")) for item in owner.get("attributes") or ()}


def plain_value(value: Mapping[str, Any] | None) -> JSON:
    """An AnyValue as a plain value; the empty AnyValue is None."""
    if not value:
        return None
    kind, content = next(iter(value.items()))
    if kind == "intValue":
        return int(content)
    if kind == "doubleValue":
        return float(content)
    if kind == "arrayValue":
        return [plain_value(item) for item in content.get("values") or ()]
    if kind == "kvlistValue":
        return {item["key"]: plain_value(item.get("value")) for item in content.get("values") or ()}
    return content


def hex_id(text: str) -> str:
    """A trace or span id as lowercase hex; some exporters write base64, the protobuf default."""
    if not text or len(text) in _HEX_LENGTHS:
        return text.lower()
    return base64.b64decode(text).hex()


@lru_cache(_NAMES_KEPT)
def span_kind(kind: int | str | None) -> str:
    """``SPAN_KIND_CLIENT``, ``SpanKind.CLIENT`` or 3 → ``CLIENT``."""
    if isinstance(kind, int):
        return _KINDS[kind] if 0 <= kind < len(_KINDS) else "UNSPECIFIED"
    return (kind or "INTERNAL").removeprefix("SPAN_KIND_").rpartition(".")[2]


@lru_cache(_NAMES_KEPT)
def span_status(code: int | str | None) -> str:
    """``STATUS_CODE_ERROR`` or 2 → ``ERROR``."""
    if isinstance(code, int):
        return _STATUSES[code] if 0 <= code < len(_STATUSES) else "UNSET"
    return (code or "UNSET").removeprefix("STATUS_CODE_").rpartition(".")[2]


def platform_ids(*sources: Mapping[str, JSON]) -> tuple[str | None, str | None]:
    """Rollout id and attempt id where a platform wrote them; empty strings count as absent."""
    rollout = next((s[semconv.AGL_ROLLOUT_ID] for s in sources if s.get(semconv.AGL_ROLLOUT_ID)), None)
    attempt = next((s[semconv.AGL_ATTEMPT_ID] for s in sources if s.get(semconv.AGL_ATTEMPT_ID)), None)
    return rollout and str(rollout), attempt and str(attempt)


def _span(span: Mapping[str, Any], scope: str, resource: dict[str, JSON]) -> Span:
    status = span.get("status") or {}
    attributes = attributes_of(span)
    rollout_id, attempt_id = platform_ids(attributes, resource)
    return Span(
        trace_id=hex_id(span["traceId"]),
        span_id=hex_id(span["spanId"]),
        parent_id=hex_id(span.get("parentSpanId") or "") or None,
        name=span.get("name") or "",
        start_ns=int(span.get("startTimeUnixNano") or 0),
        end_ns=int(span.get("endTimeUnixNano") or 0),
        kind=span_kind(span.get("kind")),
        scope=scope,
        status=span_status(status.get("code")),
        status_message=status.get("message") or "",
        attributes=attributes,
        events=tuple(_event(event) for event in span.get("events") or ()),
        links=tuple(_link(link) for link in span.get("links") or ()),
        resource=resource,
        dropped_attributes=int(span.get("droppedAttributesCount") or 0),
        rollout_id=rollout_id,
        attempt_id=attempt_id,
    )


def _event(event: Mapping[str, Any]) -> SpanEvent:
    return SpanEvent(event.get("name") or "", int(event.get("timeUnixNano") or 0), attributes_of(event))


def _link(link: Mapping[str, Any]) -> SpanLink:
    return SpanLink(hex_id(link["traceId"]), hex_id(link["spanId"]), attributes_of(link))


def _log_event(record: Mapping[str, Any]) -> SpanEvent:
    """The event name is a field in new SDKs and an attribute in old ones; so is the time."""
    attributes = attributes_of(record)
    name = record.get("eventName") or attributes.get(semconv.EVENT_NAME) or ""
    time_ns = int(record.get("timeUnixNano") or 0) or int(record.get("observedTimeUnixNano") or 0)
    return SpanEvent(name, time_ns, attributes, plain_value(record.get("body")))
