"""Credit as spans: one annotation per model call, a child of the call and linked to it.

The store gets them, so Agent Lightning's dashboard shows them. When the standard variable
``OTEL_EXPORTER_OTLP_ENDPOINT`` (or ``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT``) is set, that backend gets
them too.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agentlightning.semconv import AGL_ANNOTATION
from agentlightning.store.base import LightningStore
from agentlightning.types import Span
from agentlightning.utils.otel import make_link_attributes
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags

from milegpo_plugin.agl.verl.reader import Played
from milegpo_plugin.credit import Credit

logger = logging.getLogger(__name__)

NAMESPACE: Final = "milegpo.credit"
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_IDS: Final = RandomIdGenerator()


async def write_credit(
    store: LightningStore, played: Sequence[Played], credit: Credit, exporter: SpanExporter | None = None
) -> int:
    """Add an annotation span for every step with credit; returns how many.

    A step whose span id is unknown cannot be linked and gets none.
    """
    records = _records_by_rollout(credit)
    spans: list[Span] = []
    exported: list[ReadableSpan] = []
    for index, item in enumerate(played):
        if credit.advantages(index) is None:
            continue
        made = list(_annotations(item, records[item.trajectory.rollout_id], credit.config.estimator))
        exported += made
        spans += await _for_store(store, item, made)
    await store.add_many_spans(spans)
    if exporter is not None and exporter.export(exported) is not SpanExportResult.SUCCESS:
        logger.warning("the OTLP backend refused %d credit spans", len(exported))
    return len(spans)


def otlp_exporter(environment: Mapping[str, str] = os.environ) -> SpanExporter | None:
    """An exporter to the backend that the environment names; None when it names none."""
    if not any(environment.get(name) for name in ENDPOINTS):
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _records_by_rollout(credit: Credit) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for record in credit.step_records():
        found.setdefault(record["rollout_id"], []).append(record)
    return found


def _annotations(
    item: Played, records: Sequence[Mapping[str, Any]], estimator: str
) -> Iterator[ReadableSpan]:
    for step, record in zip(item.trajectory.steps, records, strict=True):
        trace_id = item.traces.get(step.span_id or "")
        if step.span_id is not None and trace_id is not None:
            yield _annotation(item, record, estimator, trace_id, step.span_id)


def _annotation(
    item: Played, record: Mapping[str, Any], estimator: str, trace_id: str, span_id: str
) -> ReadableSpan:
    call = SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(1))
    own = SpanContext(call.trace_id, _IDS.generate_span_id(), is_remote=False, trace_flags=TraceFlags(1))
    hidden = {"rollout_id", "task_id"}
    values = {f"{NAMESPACE}.{k}": v for k, v in record.items() if k not in hidden and v is not None}
    now = time.time_ns()
    return ReadableSpan(
        name=AGL_ANNOTATION,
        context=own,
        parent=call,
        resource=Resource({"service.name": "milegpo"}),
        attributes={
            **values,
            f"{NAMESPACE}.task_id": item.trajectory.task_id,
            f"{NAMESPACE}.estimator": estimator,
            **make_link_attributes({"span_id": span_id}),
        },
        links=[Link(call)],
        status=Status(StatusCode.OK),
        start_time=now,
        end_time=now,
    )


async def _for_store(store: LightningStore, item: Played, made: Sequence[ReadableSpan]) -> list[Span]:
    rollout_id, attempt_id = item.trajectory.rollout_id, item.trajectory.attempt_id
    if attempt_id is None or not made:
        return []
    numbers = await store.get_many_span_sequence_ids([(rollout_id, attempt_id)] * len(made))
    return [
        Span.from_opentelemetry(span, rollout_id=rollout_id, attempt_id=attempt_id, sequence_id=number)
        for span, number in zip(made, numbers, strict=True)
    ]
