"""Agent Lightning 1.0 gateway events → ``Span``.

The gateway keeps a list of events for each attempt of a rollout: ``model_request`` for every call
that it forwarded, ``reward``, and whatever else the agent posts. Each becomes one span with the
event's type and data as attributes. OTLP requests and store spans that were posted as the data of
an event become the spans that they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from milegpo_plugin import semconv
from milegpo_plugin.spans.otlp import LogRecord, is_logs_request, is_trace_request, logs_of, spans_of
from milegpo_plugin.spans.store import is_flat_span, nanoseconds, span_from_record
from milegpo_plugin.types import JSON, Span

_FAILED: Final = "failed"
_MILLISECOND_NS: Final = 1_000_000
_TRACE_ID_DIGITS: Final = 32
_SPAN_ID_DIGITS: Final = 16
_FIRST_ERROR_STATUS: Final = 400


def is_agl_event(document: JSON) -> bool:
    """Whether ``document`` is one event, as ``GET /api/rollouts/ID/events`` lists them."""
    return isinstance(document, dict) and {"event_type", "rollout_id", "data"} <= document.keys()


def is_agl_rollout(document: JSON) -> bool:
    """Whether ``document`` is one rollout with its events, such as a dumped ``CompletedRollout``."""
    return (
        isinstance(document, dict) and "rollout_id" in document and isinstance(document.get("events"), list)
    )


def spans_of_agl_rollout(rollout: Mapping[str, Any]) -> Iterator[Span | LogRecord]:
    """The spans of all events of one rollout; a failed one ends with an exception span.

    ``data_id`` names the task and becomes a resource attribute; ``rollout_state`` and
    ``error_message`` are read when present.
    """
    resource = {semconv.AGL_DATA_ID: rollout["data_id"]} if rollout.get("data_id") else {}
    latest: Mapping[str, Any] = {}
    for event in rollout["events"]:
        latest = event
        yield from spans_of_agl_event(event, resource)
    if rollout.get("rollout_state") == _FAILED and latest:
        yield _event_span(_failure(rollout, latest), resource)


def spans_of_agl_event(
    event: Mapping[str, Any], resource: Mapping[str, JSON] | None = None
) -> Iterator[Span | LogRecord]:
    """The span of one event, or the spans and log records that were posted in it.

    Raises:
        KeyError, TypeError, ValueError: a field is missing, or posted OTLP data is damaged.
    """
    data = event["data"]
    if is_trace_request(data):
        yield from (_owned(span, event) for span in spans_of(data))
    elif is_logs_request(data):
        yield from logs_of(data)
    elif is_flat_span(data):
        yield _owned(span_from_record(data), event)
    else:
        yield _event_span(event, dict(resource or {}))


def _owned(span: Span, event: Mapping[str, Any]) -> Span:
    return replace(span, rollout_id=str(event["rollout_id"]), attempt_id=_attempt(event))


def _attempt(event: Mapping[str, Any]) -> str | None:
    attempt = event.get("attempt_id")
    return None if attempt is None else str(attempt)


def _event_span(event: Mapping[str, Any], resource: dict[str, JSON]) -> Span:
    """The gateway stamps a model request when its reply is there: its start lies the latency before."""
    data = event["data"]
    end_ns = nanoseconds(event.get("timestamp"))
    latency = data.get("latency_ms") if isinstance(data, Mapping) else None
    kind = str(event["event_type"])
    is_exception = kind == semconv.AGL_EXCEPTION_EVENT
    return Span(
        trace_id=_hash(event["rollout_id"], _attempt(event))[:_TRACE_ID_DIGITS],
        span_id=_hash(event["rollout_id"], _attempt(event), kind, event.get("timestamp"), data)[
            :_SPAN_ID_DIGITS
        ],
        parent_id=None,
        name=semconv.AGL_EXCEPTION_SPAN if is_exception else kind,
        start_ns=end_ns - int((latency or 0.0) * _MILLISECOND_NS),
        end_ns=end_ns,
        scope="agentlightning",
        status="ERROR" if is_exception or _is_error(data) else "UNSET",
        attributes={semconv.AGL_EVENT_TYPE: kind, semconv.AGL_EVENT_DATA: data, **_known(kind, data)},
        resource=resource,
        rollout_id=str(event["rollout_id"]),
        attempt_id=_attempt(event),
    )


def _known(kind: str, data: JSON) -> dict[str, JSON]:
    """Rewards and exceptions in the vocabulary of Agent Lightning's spans."""
    if not isinstance(data, Mapping):
        return {}
    if kind == semconv.AGL_REWARD_EVENT:
        reward = f"{semconv.AGL_REWARD}0."
        return {f"{reward}name": data.get("name"), f"{reward}value": data.get("value")}
    if kind == semconv.AGL_EXCEPTION_EVENT:
        return {
            semconv.EXCEPTION_TYPE: data.get("type"),
            semconv.EXCEPTION_MESSAGE: data.get("message"),
        }
    return {}


def _is_error(data: JSON) -> bool:
    """As the gateway marks a call that it could not forward or that the server refused."""
    if not isinstance(data, Mapping):
        return False
    status = data.get("http_status")
    return data.get("status") == "error" or (isinstance(status, int) and status >= _FIRST_ERROR_STATUS)


def _failure(rollout: Mapping[str, Any], latest: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "event_type": semconv.AGL_EXCEPTION_EVENT,
        "rollout_id": rollout["rollout_id"],
        "attempt_id": latest.get("attempt_id"),
        "timestamp": rollout.get("finished_at") or latest.get("timestamp"),
        "data": {"type": "rollout failed", "message": rollout.get("error_message")},
    }


def _hash(*parts: JSON) -> str:
    text = orjson.dumps(parts, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    return hashlib.sha256(text).hexdigest()
