"""Langfuse exports → ``Span``: traces with observations, observations alone, scores.

Both the API's camelCase and the blob export's snake_case are read. Attributes get the names that
Langfuse's own SDK writes. The trace becomes a span around its observations, scores become reward
spans. A parent that was not exported stays named; null input or output stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from milegpo_plugin import semconv
from milegpo_plugin.spans.scores import derived_id, score_span
from milegpo_plugin.spans.store import nanoseconds
from milegpo_plugin.types import JSON, Span

_SECOND_NS: Final = 1_000_000_000


def is_langfuse_trace(document: JSON) -> bool:
    """Whether ``document`` is a trace, with its observations and scores or with their ids only."""
    return (
        isinstance(document, dict)
        and isinstance(document.get("observations"), list)
        and {"id", "timestamp"} <= document.keys()
    )


def is_langfuse_observation(document: JSON) -> bool:
    """Whether ``document`` is one observation."""
    return (
        isinstance(document, dict)
        and {"id", "type"} <= document.keys()
        and not {"traceId", "trace_id"}.isdisjoint(document)
        and not {"startTime", "start_time"}.isdisjoint(document)
    )


def is_langfuse_score(document: JSON) -> bool:
    """Whether ``document`` is one score."""
    return (
        isinstance(document, dict)
        and {"id", "name", "value", "source"} <= document.keys()
        and not {"traceId", "trace_id", "sessionId", "session_id"}.isdisjoint(document)
    )


def spans_of_langfuse_trace(document: Mapping[str, Any]) -> Iterator[Span]:
    """The trace as a span, its observations below it, and its scores.

    Raises:
        KeyError, TypeError, ValueError: a field is missing or wrong.
    """
    trace = _camel(document)
    shared = {"traceId": trace["id"], "sessionId": trace.get("sessionId")}
    children = [
        _observation({**shared, **_camel(item)}) for item in trace["observations"] if isinstance(item, dict)
    ]
    start_ns = min([nanoseconds(trace["timestamp"]), *(child.start_ns for child in children)])
    latency_ns = round((trace.get("latency") or 0) * _SECOND_NS)
    end_ns = max([start_ns + latency_ns, *(child.end_ns for child in children)])
    yield _root(trace, start_ns, end_ns)
    yield from children
    for score in trace.get("scores") or ():
        if isinstance(score, dict):
            yield from spans_of_langfuse_score({"traceId": trace["id"], **_camel(score)})


def spans_of_langfuse_observation(document: Mapping[str, Any]) -> Iterator[Span]:
    """One observation as a span; one without a parent also brings the span of its trace.

    Raises:
        KeyError, TypeError, ValueError: a field is missing or wrong.
    """
    span = _observation(_camel(document))
    if span.parent_id == derived_id("trace", span.trace_id):
        yield _root({"id": span.trace_id}, span.start_ns, span.end_ns)
    yield span


def spans_of_langfuse_score(document: Mapping[str, Any]) -> Iterator[Span]:
    """One score as a reward span. Scores of a category have no number, and are no rewards.

    Raises:
        KeyError, TypeError, ValueError: a field is missing or wrong.
    """
    score = _camel(document)
    links = {"span_id": score.get("observationId"), "trace_id": score.get("traceId")}
    yield score_span(
        score["name"],
        score["value"],
        nanoseconds(score.get("timestamp") or score.get("createdAt")),
        links={name: str(target) for name, target in links.items() if target},
        session=score.get("sessionId"),
        key=score["id"],
    )


def _root(trace: Mapping[str, Any], start_ns: int, end_ns: int) -> Span:
    return Span(
        trace_id=str(trace["id"]),
        span_id=derived_id("trace", trace["id"]),
        parent_id=None,
        name=trace.get("name") or "",
        start_ns=start_ns,
        end_ns=end_ns,
        attributes=_known(
            {
                semconv.LANGFUSE_TYPE: semconv.LANGFUSE_TRACE_TYPE,
                semconv.LANGFUSE_TRACE_NAME: trace.get("name"),
                semconv.SESSION_ID: trace.get("sessionId"),
                **_metadata(semconv.LANGFUSE_TRACE_METADATA, trace.get("metadata")),
            }
        ),
    )


def _observation(observation: Mapping[str, Any]) -> Span:
    start_ns = nanoseconds(observation["startTime"])
    return Span(
        trace_id=str(observation["traceId"]),
        span_id=str(observation["id"]),
        parent_id=observation.get("parentObservationId") or derived_id("trace", observation["traceId"]),
        name=observation.get("name") or "",
        start_ns=start_ns,
        end_ns=nanoseconds(observation.get("endTime")) or start_ns,
        status="ERROR" if observation.get("level") == "ERROR" else "UNSET",
        status_message=observation.get("statusMessage") or "",
        attributes=_known(
            {
                semconv.LANGFUSE_TYPE: str(observation["type"]).lower(),
                semconv.LANGFUSE_INPUT: observation.get("input"),
                semconv.LANGFUSE_OUTPUT: observation.get("output"),
                semconv.LANGFUSE_MODEL: observation.get("model") or observation.get("providedModelName"),
                semconv.LANGFUSE_USAGE: observation.get("usageDetails") or observation.get("usage"),
                semconv.SESSION_ID: observation.get("sessionId"),
                **_metadata(semconv.LANGFUSE_METADATA, observation.get("metadata")),
            }
        ),
    )


def _metadata(prefix: str, metadata: JSON) -> dict[str, JSON]:
    """The entries of an object, or of the JSON of one."""
    if isinstance(metadata, str) and metadata.startswith("{"):
        metadata = orjson.loads(metadata)
    return {prefix + str(key): value for key, value in metadata.items()} if isinstance(metadata, dict) else {}


def _known(attributes: Mapping[str, JSON]) -> dict[str, JSON]:
    return {key: value for key, value in attributes.items() if value is not None}


def _camel(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with ``trace_id`` as ``traceId``."""
    return {re.sub(r"_([a-z])", lambda match: match[1].upper(), key): item for key, item in record.items()}
