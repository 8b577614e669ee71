"""The endpoint takes what exporters and Collectors send, and says what is wrong with the rest."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import zlib

import orjson
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from milegpo_plugin.spans import OtlpServer, receiver

PROTOBUF, JSON = "application/x-protobuf", "application/json"


@pytest.fixture
def received():
    return []


@pytest.fixture
def server(received):
    running = OtlpServer("127.0.0.1", 0, received.extend)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def connection(server):
    """A connection to a running server, kept open over requests."""
    client = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    yield client
    client.close()


@pytest.fixture
def post(connection):
    def send(body, kind=JSON, path="/v1/traces", **headers):
        connection.request(
            "POST", path, body, {"Content-Type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}}
        )
        response = connection.getresponse()
        return response.status, response.read()

    return send


@pytest.fixture(scope="module")
def request_json(traces):
    """The first request of a capture."""
    return (traces / "traceloop_openai.otlp.jsonl").read_bytes().splitlines()[0]


@pytest.fixture(scope="module")
def request_protobuf(request_json):
    document = orjson.loads(request_json)
    for spans in (scope["spans"] for item in document["resourceSpans"] for scope in item["scopeSpans"]):
        for span in spans:
            for name in ("traceId", "spanId", "parentSpanId"):
                if span.get(name):
                    span[name] = __import__("base64").b64encode(bytes.fromhex(span[name])).decode()
    return ParseDict(document, ExportTraceServiceRequest()).SerializeToString()


def names(received):
    return [span.name for span in received]


def test_json_and_protobuf_bring_the_same_spans(post, received, request_json, request_protobuf):
    assert post(request_json) == (200, b"{}")
    from_json = list(received)
    received.clear()
    assert post(request_protobuf, PROTOBUF) == (200, b"")
    assert received == from_json != []


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)], ids=["gzip", "deflate"]
)
def test_compressed_bodies_are_inflated(encoding, compress, post, received, request_protobuf):
    assert post(compress(request_protobuf), PROTOBUF, Content_Encoding=encoding)[0] == 200
    assert received


def test_chunked_bodies_are_put_together(post, received, request_json):
    packed = gzip.compress(request_json)
    pieces = iter([packed[:100], packed[100:101], packed[101:]])
    assert post(pieces, Content_Encoding="gzip")[0] == 200
    assert received


def test_a_connection_serves_one_request_after_another(post, received, request_json):
    for _ in range(3):
        assert post(request_json)[0] == 200
    assert len(received) == 3 * len(set(received and [span.span_id for span in received]))


def test_log_records_arrive_as_what_they_are(post, received, traces):
    body = (traces / "openai_v2_default.logs.otlp.jsonl").read_bytes().splitlines()[0]
    assert post(body, path="/v1/logs")[0] == 200
    assert {type(item).__name__ for item in received} == {"LogRecord"}


@pytest.mark.parametrize("body", [b"{}", b'{"resourceSpans": []}'])
def test_an_empty_request_is_fine(body, post, received):
    assert post(body) == (200, b"{}")
    assert not received


def test_metrics_are_accepted_and_left_unread(post, received):
    assert post(b"whatever", PROTOBUF, path="/v1/metrics")[0] == 200
    assert not received


BAD = [
    pytest.param(b"{broken", JSON, "/v1/traces", {}, 400, id="not JSON"),
    pytest.param(b"[1]", JSON, "/v1/traces", {}, 400, id="JSON, but no request"),
    pytest.param(b'{"resourceLogs": []}', JSON, "/v1/traces", {}, 400, id="logs on the path of traces"),
    pytest.param(
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}', JSON, "/v1/traces", {}, 400, id="no id"
    ),
    pytest.param(b"\xff\xff\xff", PROTOBUF, "/v1/traces", {}, 400, id="not protobuf"),
    pytest.param(b"{}", "text/plain", "/v1/traces", {}, 415, id="content type"),
    pytest.param(b"{}", JSON, "/v2/spans", {}, 404, id="path"),
    pytest.param(b"{}", JSON, "/v1/traces", {"Content-Encoding": "br"}, 415, id="encoding"),
    pytest.param(b"not gzip", JSON, "/v1/traces", {"Content-Encoding": "gzip"}, 400, id="damaged gzip"),
    pytest.param(
        gzip.compress(b"{}")[:-6], JSON, "/v1/traces", {"Content-Encoding": "gzip"}, 400, id="cut gzip"
    ),
    pytest.param(b"", JSON, "/v1/traces", {"Content-Length": "ten"}, 400, id="length"),
]


@pytest.mark.parametrize(("body", "kind", "path", "headers", "status"), BAD)
def test_a_bad_request_is_refused_with_its_reason(body, kind, path, headers, status, post, received):
    answer, reason = post(body, kind, path, **headers)
    assert answer == status
    assert len(reason) > 10
    if kind == JSON:
        assert json.loads(reason)["message"]
    assert not received


def test_a_body_inflates_no_further_than_the_limit(post, received, monkeypatch, request_json):
    monkeypatch.setattr(receiver, "MAX_BODY_BYTES", 1000)
    status, _ = post(gzip.compress(b" " * 100_000), Content_Encoding="gzip")
    assert status == 413
    assert not received


def test_a_reason_in_protobuf_is_a_google_rpc_status(post):
    _, reason = post(b"\xff\xff\xff", PROTOBUF)
    assert reason.startswith(b"\x08\x03\x12")


@pytest.mark.parametrize("kind", [JSON, PROTOBUF])
def test_a_receiver_that_stops_asks_to_send_again(kind, server, post, received):
    server.refuse()
    status, body = post(b"{}" if kind == JSON else b"", kind)
    assert (status, received) == (503, [])
    assert b"the receiver has been stopped" in body


def test_get_says_what_to_do(connection):
    connection.request("GET", "/")
    response = connection.getresponse()
    assert (response.status, response.read()) == (405, b"POST OTLP to /v1/traces")
