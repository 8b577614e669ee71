"""Spans of the OpenTelemetry Python SDK, as an exporter gets them → ``Span``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import format_span_id, format_trace_id

from milegpo_plugin.spans.otlp import platform_ids
from milegpo_plugin.types import JSON, Span, SpanEvent, SpanLink


def spans_from_sdk(spans: Iterable[ReadableSpan]) -> list[Span]:
    """Finished SDK spans.

    Raises:
        ValueError: a span has no context.
    """
    return [_span(span) for span in spans]


def _span(span: ReadableSpan) -> Span:
    context = span.context
    if context is None:
        raise ValueError(f"span {span.name!r} has no context")
    attributes = _plain(span.attributes)
    resource = _plain(span.resource.attributes)
    rollout_id, attempt_id = platform_ids(attributes, resource)
    return Span(
        trace_id=format_trace_id(context.trace_id),
        span_id=format_span_id(context.span_id),
        parent_id=format_span_id(span.parent.span_id) if span.parent else None,
        name=span.name,
        start_ns=span.start_time or 0,
        end_ns=span.end_time or 0,
        kind=span.kind.name,
        scope=span.instrumentation_scope.name if span.instrumentation_scope else "",
        status=span.status.status_code.name,
        status_message=span.status.description or "",
        attributes=attributes,
        events=tuple(SpanEvent(e.name, e.timestamp, _plain(e.attributes)) for e in span.events),
        links=tuple(
            SpanLink(
                format_trace_id(link.context.trace_id),
                format_span_id(link.context.span_id),
                _plain(link.attributes),
            )
            for link in span.links
        ),
        resource=resource,
        dropped_attributes=span.dropped_attributes,
        rollout_id=rollout_id,
        attempt_id=attempt_id,
    )


def _plain(attributes: Mapping[str, Any] | None) -> dict[str, JSON]:
    """The SDK stores sequences as tuples."""
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in (attributes or {}).items()
    }
