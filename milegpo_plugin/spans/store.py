"""Agent Lightning store spans and the OTel SDK's own JSON → ``Span``.

Both are one flat record per span. A record is a mapping (a line of a file) or an object with
the same field names (what the store returns).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from milegpo_plugin.spans.otlp import platform_ids, span_kind, span_status
from milegpo_plugin.types import JSON, Span, SpanEvent, SpanLink

_SECOND_NS: Final = 1_000_000_000
_NANOSECONDS_FROM: Final = 1e12
"""A time above this is in nanoseconds already (as seconds it would be the year 33658)."""
_NO_FIELDS: Final[Mapping[str, Any]] = {}


def spans_from_store(records: Iterable[Any]) -> list[Span]:
    """Spans of an Agent Lightning store, as objects or in their JSON form.

    Raises:
        KeyError, ValueError: a record lacks an id, or its time is not a time.
    """
    return [span_from_record(record) for record in records]


def is_flat_span(document: JSON) -> bool:
    """Whether ``document`` is one store span, or one span of ``ReadableSpan.to_json``."""
    if not isinstance(document, dict) or "name" not in document or "start_time" not in document:
        return False
    return "span_id" in document or "span_id" in (document.get("context") or {})


def span_from_record(record: Any) -> Span:
    """One flat record as a span. Its attributes are kept, not copied."""
    field = _fields(record).get
    trace_id, span_id, parent_id = field("trace_id"), field("span_id"), field("parent_id")
    if not trace_id or not span_id:
        context = _fields(field("context"))
        trace_id, span_id = trace_id or context.get("trace_id"), span_id or context.get("span_id")
    status = _fields(field("status")).get
    attributes = field("attributes") or {}
    resource = _fields(field("resource")).get("attributes") or {}
    rollout_id, attempt_id = field("rollout_id"), field("attempt_id")
    if rollout_id is None:
        rollout_id, attempt_id = platform_ids(attributes, resource)
    scope, events, links = field("instrumentation_scope"), field("events"), field("links")
    return Span(  # in the order of the fields: names take twice as long as all the rest of the call
        _hex(trace_id),
        _hex(span_id),
        (_hex(parent_id) or None) if parent_id else None,
        field("name") or "",
        nanoseconds(field("start_time")),
        nanoseconds(field("end_time")),
        span_kind(field("kind")),
        (_fields(scope).get("name") or "") if scope else "",
        span_status(status("status_code")),
        status("description") or "",
        attributes if isinstance(attributes, dict) else dict(attributes),
        tuple(map(_event, events)) if events else (),
        (),
        tuple(map(_link, links)) if links else (),
        resource if isinstance(resource, dict) else dict(resource),
        0,
        rollout_id,
        attempt_id,
        field("sequence_id"),
    )


def nanoseconds(time: float | int | str | None) -> int:
    """Seconds, nanoseconds or ISO 8601 → nanoseconds since the epoch; an unknown time is 0."""
    if time is None:
        return 0
    if isinstance(time, str):
        moment = datetime.fromisoformat(time)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        whole = int(moment.replace(microsecond=0).timestamp())
        return whole * _SECOND_NS + moment.microsecond * 1000
    return round(time * _SECOND_NS) if time < _NANOSECONDS_FROM else int(time)


def _event(event: Any) -> SpanEvent:
    fields = _fields(event)
    return SpanEvent(
        fields.get("name") or "", nanoseconds(fields.get("timestamp")), dict(fields.get("attributes") or {})
    )


def _link(link: Any) -> SpanLink:
    fields = _fields(link)
    context = _fields(fields.get("context"))
    return SpanLink(
        _hex(context.get("trace_id")), _hex(context.get("span_id")), dict(fields.get("attributes") or {})
    )


def _hex(text: str | None) -> str:
    if not text:
        return ""
    return text.removeprefix("0x").lower()


def _fields(owner: Any) -> Mapping[str, Any]:
    """The fields of a mapping, of an object, or of nothing; a pydantic object keeps extras apart."""
    if owner is None:
        return _NO_FIELDS
    if isinstance(owner, dict):
        return owner
    extra = getattr(owner, "__pydantic_extra__", None)
    return {**vars(owner), **extra} if extra else vars(owner)
