"""Spans from files of every form, from the SDK and from the platform's store."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from milegpo_plugin.errors import InputNotFoundError
from milegpo_plugin.spans import iter_spans, read_spans, spans_from_sdk, spans_from_store
from milegpo_plugin.types import Skipped, Span

CAPTURE = "openinference_openai.otlp.jsonl"


@pytest.fixture
def capture(traces) -> Path:
    return traces / CAPTURE


@pytest.fixture
def problems() -> list[Skipped]:
    return []


@pytest.fixture
def read(problems) -> Callable[..., list[Span]]:
    def read_files(*paths: Path, logs: tuple[Path, ...] = ()) -> list[Span]:
        return read_spans(paths, logs, on_problem=problems.append)

    return read_files


def as_protobuf(line: str) -> bytes:
    """One OTLP JSON line as protobuf; JSON has hex ids where protobuf's own mapping has base64."""
    document = json.loads(line)
    request = json_format.ParseDict(_without_ids(document), ExportTraceServiceRequest())
    plain = [s for r in document["resourceSpans"] for c in r["scopeSpans"] for s in c["spans"]]
    encoded = [s for r in request.resource_spans for c in r.scope_spans for s in c.spans]
    for source, target in zip(plain, encoded, strict=True):
        target.trace_id = bytes.fromhex(source["traceId"])
        target.span_id = bytes.fromhex(source["spanId"])
        target.parent_span_id = bytes.fromhex(source.get("parentSpanId", ""))
    return request.SerializeToString()


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            k: _without_ids(v) for k, v in value.items() if k not in ("traceId", "spanId", "parentSpanId")
        }
    return [_without_ids(item) for item in value] if isinstance(value, list) else value


def with_prefix(message: bytes) -> bytes:
    size, prefix = len(message), bytearray()
    while size > 0x7F:
        prefix.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*prefix, size]) + message


def test_a_line_that_is_no_json_is_named_and_the_others_are_read(capture, read, problems, tmp_path):
    lines = capture.read_text(encoding="utf-8").splitlines()
    file = tmp_path / "trace.jsonl"
    file.write_text("\n".join([*lines, '{"resourceSpans": [', ""]), encoding="utf-8")
    assert read(file) == read(capture)
    (problem,) = problems
    assert problem.kind == "line"
    assert problem.id == f"{file}:{len(lines) + 1}"
    assert "not JSON" in problem.reason


def test_a_first_line_that_is_no_json_is_skipped_too(capture, read, problems, tmp_path):
    file = tmp_path / "trace.jsonl"
    file.write_text("oops\n" + capture.read_text(encoding="utf-8"), encoding="utf-8")
    assert read(file) == read(capture)
    assert [problem.id for problem in problems] == [f"{file}:1"]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ('{"hello": 1}', "not a trace"),
        ("[1, 2]", "not a trace"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x"}]}]}]}', "bad OTLP trace request"),
        ('{"resourceSpans": 3}', "bad OTLP trace request"),
        ('{"name": "x", "span_id": "1", "start_time": "noon"}', "bad store or SDK span"),
    ],
)
def test_a_line_of_another_form_says_what_is_wrong(line, rule, capture, read, problems, tmp_path):
    file = tmp_path / "trace.jsonl"
    file.write_text(line + "\n" + capture.read_text(encoding="utf-8"), encoding="utf-8")
    assert read(file) == read(capture)
    assert [problem.id for problem in problems] == [f"{file}:1"]
    assert rule in problems[0].reason


def test_a_missing_file_is_an_error_that_names_it(capture, read, tmp_path):
    with pytest.raises(InputNotFoundError, match=r"absent\.jsonl: no such file"):
        read(capture, tmp_path / "absent.jsonl")


def test_an_empty_file_has_no_spans(read, problems, tmp_path):
    file = tmp_path / "empty.jsonl"
    file.write_text("", encoding="utf-8")
    assert read(file) == []
    assert problems == []


def test_a_gzipped_file_reads_as_the_plain_one(capture, read, tmp_path):
    file = tmp_path / "trace.jsonl.gz"
    file.write_bytes(gzip.compress(capture.read_bytes()))
    assert read(file) == read(capture)


def test_a_gzipped_file_that_ends_early_gives_what_it_has(capture, read, problems, tmp_path):
    file = tmp_path / "trace.jsonl.gz"
    data = gzip.compress(capture.read_bytes() * 3)
    file.write_bytes(data[: len(data) // 2])
    read(file)
    assert problems[-1].kind == "file"
    assert "damaged" in problems[-1].reason


def test_a_pretty_printed_file_is_one_document(capture, read, tmp_path):
    documents = [json.loads(line) for line in capture.read_text(encoding="utf-8").splitlines()]
    file = tmp_path / "trace.json"
    file.write_text("\ufeff" + json.dumps(documents, indent=2), encoding="utf-8")
    assert read(file) == read(capture)


@pytest.mark.parametrize("frame", [with_prefix, bytes], ids=["length-prefixed", "bare"])
def test_protobuf_reads_as_json(frame, capture, read, problems, tmp_path):
    lines = capture.read_text(encoding="utf-8").splitlines()
    lines = lines if frame is with_prefix else lines[:1]
    binary, text = tmp_path / "trace.pb", tmp_path / "trace.jsonl"
    binary.write_bytes(b"".join(frame(as_protobuf(line)) for line in lines))
    text.write_text("\n".join(lines), encoding="utf-8")
    assert read(binary) == read(text)
    assert problems == []


def test_protobuf_that_ends_early_gives_what_it_has(capture, read, problems, tmp_path):
    lines = capture.read_text(encoding="utf-8").splitlines()
    file = tmp_path / "trace.bin"
    message = with_prefix(as_protobuf(lines[0]))
    file.write_bytes(message + message[:-20])
    assert len(read(file)) == len(json.loads(lines[0])["resourceSpans"][0]["scopeSpans"][0]["spans"])
    assert "not OTLP protobuf" in problems[0].reason


def test_spans_of_a_file_come_one_request_at_a_time(capture, problems, tmp_path):
    file = tmp_path / "trace.jsonl"
    file.write_text(capture.read_text(encoding="utf-8") + "\nbroken", encoding="utf-8")
    assert len(list(islice(iter_spans(file, on_problem=problems.append), 2))) == 2
    assert problems == []


def test_log_records_go_to_their_spans_in_order_of_time(read, traces):
    spans = read(
        traces / "openai_v2_default.otlp.jsonl", logs=(traces / "openai_v2_default.logs.otlp.jsonl",)
    )
    for span in spans:
        assert span.logs[-1].name == "gen_ai.choice"
        assert [event.time_ns for event in span.logs] == sorted(event.time_ns for event in span.logs)


def test_log_records_in_a_trace_file_count_as_well(read, traces, tmp_path):
    names = ("openai_v2_default.otlp.jsonl", "openai_v2_default.logs.otlp.jsonl")
    both = tmp_path / "both.jsonl"
    both.write_text("".join((traces / name).read_text(encoding="utf-8") for name in names), encoding="utf-8")
    assert read(both) == read(traces / names[0], logs=(traces / names[1],))


def test_log_records_without_their_span_are_reported(capture, read, problems, traces):
    spans = read(capture, logs=(traces / "openai_v2_latest.logs.otlp.jsonl",))
    assert all(span.logs == () for span in spans)
    assert {problem.kind for problem in problems} == {"log"}


def test_every_form_of_an_otlp_value_is_read(read, tmp_path):
    values = {
        "text": {"stringValue": "a"},
        "yes": {"boolValue": True},
        "count": {"intValue": "7"},
        "share": {"doubleValue": 0.5},
        "list": {"arrayValue": {"values": [{"intValue": 1}, {}]}},
        "object": {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}},
        "bytes": {"bytesValue": "AAE="},
        "nothing": {},
    }
    span = {
        "traceId": "AB" * 16,
        "spanId": "q" * 10 + "s=",
        "startTimeUnixNano": "5",
        "kind": "SPAN_KIND_CLIENT",
        "status": {"code": "STATUS_CODE_ERROR", "message": "m"},
        "attributes": [{"key": key, "value": value} for key, value in values.items()],
        "droppedAttributesCount": 3,
    }
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}), encoding="utf-8")
    (found,) = read(file)
    assert found.attributes == {
        "text": "a",
        "yes": True,
        "count": 7,
        "share": 0.5,
        "list": [1, None],
        "object": {"k": "v"},
        "bytes": "AAE=",
        "nothing": None,
    }
    assert found.trace_id == "ab" * 16
    assert len(found.span_id) == 16
    assert (found.kind, found.status, found.status_message) == ("CLIENT", "ERROR", "m")
    assert (found.start_ns, found.end_ns, found.dropped_attributes) == (5, 0, 3)


@pytest.fixture
def sdk_spans():
    exporter = InMemorySpanExporter()
    provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=2))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("some.scope")
    with tracer.start_as_current_span("outer") as outer:
        outer.set_attributes({"a": 1, "b": [1, 2], "c": "x"})
        with tracer.start_as_current_span("inner") as inner:
            inner.add_event("said", {"k": "v"})
    return exporter.get_finished_spans()


def test_sdk_spans_keep_what_an_exporter_sees(sdk_spans):
    inner, outer = spans_from_sdk(sdk_spans)
    assert (inner.parent_id, inner.trace_id) == (outer.span_id, outer.trace_id)
    assert outer.attributes == {"b": [1, 2], "c": "x"}
    assert outer.dropped_attributes == 1
    assert outer.scope == "some.scope"
    assert (inner.events[0].name, inner.events[0].attributes) == ("said", {"k": "v"})
    assert outer.start_ns <= inner.start_ns <= inner.end_ns <= outer.end_ns


def test_the_sdk_s_own_json_reads_as_its_spans(sdk_spans, read, tmp_path):
    file = tmp_path / "readable.jsonl"
    file.write_text("\n".join(span.to_json(indent=None) for span in sdk_spans), encoding="utf-8")
    for line, span in zip(read(file), spans_from_sdk(sdk_spans), strict=True):
        assert (line.trace_id, line.span_id, line.parent_id) == (span.trace_id, span.span_id, span.parent_id)
        assert (line.name, line.kind, line.status) == (span.name, span.kind, span.status)
        assert line.attributes == span.attributes
        assert abs(line.start_ns - span.start_ns) < 1000


def test_store_spans_are_read_as_objects_and_as_json(read, traces):
    file = traces / "agentlightning03_agentops.agl_spans.jsonl"
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    objects = [json.loads(json.dumps(record), object_hook=_object) for record in records]
    for made, record in zip(objects, records, strict=True):
        made.attributes = record["attributes"]
        made.resource.attributes = record["resource"]["attributes"]
    assert spans_from_store(records) == read(file) == spans_from_store(objects)
    first = spans_from_store(records)[0]
    assert (first.rollout_id, first.attempt_id, first.sequence_id) == ("ro-ce4ffd60aebd", "at-f87767cb", 1)


def _object(fields: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(**{key: value for key, value in fields.items() if key.isidentifier()})


def test_ids_of_the_platform_in_otlp_count_unless_they_are_empty(read, traces, tmp_path):
    capture = traces / "agentlightning03_agentops.otlp.jsonl"
    assert {span.rollout_id for span in read(capture)} == {None}
    named = tmp_path / "named.jsonl"
    text = capture.read_text(encoding="utf-8")
    key = '{"key":"agentlightning.rollout_id","value":{"stringValue":"'
    assert key in text
    named.write_text(text.replace(key, key + "ro-1"), encoding="utf-8")
    assert {span.rollout_id for span in read(named) if "agentlightning.rollout_id" in span.resource} == {
        "ro-1"
    }
