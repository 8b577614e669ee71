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
    """One flat record as a span."""
    context = _get(record, "context")
    attributes = dict(_get(record, "attributes") or {})
    resource = dict(_get(_get(record, "resource"), "attributes") or {})
    rollout_id, attempt_id = platform_ids(attributes, resource)
    status = _get(record, "status")
    return Span(
        trace_id=_hex(_get(record, "trace_id") or _get(context, "trace_id")),
        span_id=_hex(_get(record, "span_id") or _get(context, "span_id")),
        parent_id=_hex(_get(record, "parent_id")) or None,
        name=_get(record, "name") or "",
        start_ns=nanoseconds(_get(record, "start_time")),
        end_ns=nanoseconds(_get(record, "end_time")),
        kind=span_kind(_get(record, "kind")),
        scope=_get(_get(record, "instrumentation_scope"), "name") or "",
        status=span_status(_get(status, "status_code")),
        status_message=_get(status, "description") or "",
        attributes=attributes,
        events=tuple(_event(event) for event in _get(record, "events") or ()),
        links=tuple(_link(link) for link in _get(record, "links") or ()),
        resource=resource,
        rollout_id=_get(record, "rollout_id") or rollout_id,
        attempt_id=_get(record, "attempt_id") or attempt_id,
        sequence_id=_get(record, "sequence_id"),
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
    return SpanEvent(
        _get(event, "name") or "",
        nanoseconds(_get(event, "timestamp")),
        dict(_get(event, "attributes") or {}),
    )


def _link(link: Any) -> SpanLink:
    context = _get(link, "context")
    return SpanLink(
        _hex(_get(context, "trace_id")), _hex(_get(context, "span_id")), dict(_get(link, "attributes") or {})
    )


def _hex(text: str | None) -> str:
    return (text or "").removeprefix("0x").lower()


def _get(owner: Any, name: str) -> Any:
    if isinstance(owner, Mapping):
        return owner.get(name)
    return getattr(owner, name, None)
