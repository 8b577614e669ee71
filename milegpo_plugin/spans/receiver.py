"""An OTLP/HTTP endpoint: protobuf and JSON, gzip, chunked bodies, kept-open connections.

Implements what exporters and Collectors use of OTLP/HTTP (opentelemetry-proto, docs/specification):
``POST /v1/traces`` and ``/v1/logs``; metrics are accepted and left unread. It knows no dialect: what
it decodes goes to a sink. The standard library's server is enough: a batch every few seconds from
each process, on the loopback interface by default.
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias

import orjson
from google.protobuf.message import DecodeError
from typing_extensions import override

from milegpo_plugin.errors import TraceError
from milegpo_plugin.spans.documents import read_document
from milegpo_plugin.spans.otlp import LogRecord, is_logs_request, is_trace_request
from milegpo_plugin.spans.protobuf import decode_logs_request, decode_trace_request
from milegpo_plugin.types import JSON, Span

_LOGGER = logging.getLogger(__name__)

Sink: TypeAlias = Callable[[list[Span | LogRecord]], None]

TRACES_PATH: Final = "/v1/traces"
LOGS_PATH: Final = "/v1/logs"
METRICS_PATH: Final = "/v1/metrics"
PROTOBUF: Final = "application/x-protobuf"
JSON_TYPE: Final = "application/json"
MAX_BODY_BYTES: Final = 256 * 2**20
"""Of a request after decompression; exporters send a few megabytes at most."""

_DECODERS: Final[Mapping[str, Callable[[bytes], dict[str, Any]]]] = {
    TRACES_PATH: decode_trace_request,
    LOGS_PATH: decode_logs_request,
}
_FORMS: Final[Mapping[str, Callable[[JSON], bool]]] = {
    TRACES_PATH: is_trace_request,
    LOGS_PATH: is_logs_request,
}
_ANY_WRAPPER: Final = 32 + zlib.MAX_WBITS
"""zlib's switch to tell gzip from zlib by the header."""
_INVALID_ARGUMENT: Final = 3
"""google.rpc.Code of a request that must not be sent again."""
_UNAVAILABLE: Final = 14
"""google.rpc.Code of a request that may be sent again."""


class OtlpServer(ThreadingHTTPServer):
    """Listens at once; serves in ``serve_forever``.

    Args:
        host: interface to listen on.
        port: 0 takes a free one; ``server_port`` tells which.
        sink: gets the spans and log records of each request, from the thread of its connection, before
            the request is answered; one call at a time.

    Raises:
        OSError: the port is taken, or the host is not this machine.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, sink: Sink) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        self._refuses = False
        super().__init__((host, port), _Handler)

    def take(self, items: list[Span | LogRecord]) -> bool:
        """Hand over what a request brought, unless nothing is taken any more."""
        with self._lock:
            if not self._refuses and items:
                self._sink(items)
            return not self._refuses

    def refuse(self) -> None:
        """Take nothing from now on: exporters are told to try again, so what was answered is all there is."""
        with self._lock:
            self._refuses = True

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle of a request, mostly."""
        _LOGGER.warning("the connection of %s broke off", client_address, exc_info=True)


class _BadRequestError(Exception):
    """What the client has to be told, with the status."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "milegpo"
    server: OtlpServer

    def do_POST(self) -> None:
        """One export request."""
        kind = self.headers.get_content_type()
        try:
            body = self._read_body()
            items = decode_request(self.path, kind, body)
        except _BadRequestError as error:
            self.close_connection = True
            self._answer(error.status, kind, _status_body(kind, str(error)))
            return
        if self.server.take(items):
            self._answer(HTTPStatus.OK, kind, b"{}" if kind == JSON_TYPE else b"")
            return
        self.close_connection = True
        body = _status_body(kind, "the receiver has been stopped", _UNAVAILABLE)
        self._answer(HTTPStatus.SERVICE_UNAVAILABLE, kind, body)

    def do_GET(self) -> None:
        """Exporters only post; this tells a person so."""
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", b"POST OTLP to " + TRACES_PATH.encode())

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            data = self._read_chunks()
        else:
            data = self.rfile.read(_checked_size(_number(self.headers.get("Content-Length") or "0", 10)))
        encoding = self.headers.get("Content-Encoding", "identity").lower()
        if encoding in ("gzip", "deflate"):
            return _decompress(data)
        if encoding != "identity":
            raise _BadRequestError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"encoding {encoding!r} is not known")
        return data

    def _read_chunks(self) -> bytes:
        """The body of a request of unknown length (RFC 9112, section 7.1); trailers are passed over."""
        chunks: list[bytes] = []
        total = 0
        while size := _number(self.rfile.readline(64).decode("latin-1").partition(";")[0] or "0", 16):
            total = _checked_size(total + size)
            chunks.append(self.rfile.read(size))
            self.rfile.readline(8)
        while self.rfile.readline(1024).strip():
            pass
        return b"".join(chunks)

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def decode_request(path: str, kind: str, body: bytes) -> list[Span | LogRecord]:
    """The spans or log records of one export request.

    Raises:
        _BadRequestError: the path or the content type is not known, or the body is not such a request.
    """
    path = path.partition("?")[0].rstrip("/")
    if path == METRICS_PATH:
        return []
    if path not in _DECODERS:
        raise _BadRequestError(HTTPStatus.NOT_FOUND, f"{path}: post to {TRACES_PATH} or {LOGS_PATH}")
    if kind not in (PROTOBUF, JSON_TYPE):
        reason = f"content type {kind!r}: send {PROTOBUF} or {JSON_TYPE}"
        raise _BadRequestError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, reason)
    try:
        document = orjson.loads(body) if kind == JSON_TYPE else _DECODERS[path](body)
        if document and not _FORMS[path](document):
            raise TraceError(f"not an OTLP request of {path}")
        return list(read_document(document)) if document else []
    except (DecodeError, TraceError, orjson.JSONDecodeError) as error:
        raise _BadRequestError(HTTPStatus.BAD_REQUEST, str(error)) from error


def _number(text: str, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise _BadRequestError(HTTPStatus.BAD_REQUEST, f"{text!r} is no length of a body") from None


def _checked_size(size: int) -> int:
    if size > MAX_BODY_BYTES:
        raise _BadRequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{size} bytes; at most {MAX_BODY_BYTES}")
    return size


def _decompress(data: bytes) -> bytes:
    """Inflate, but no further than the limit."""
    inflater = zlib.decompressobj(_ANY_WRAPPER)
    try:
        plain = inflater.decompress(data, MAX_BODY_BYTES + 1)
    except zlib.error as error:
        raise _BadRequestError(HTTPStatus.BAD_REQUEST, f"the compressed body is damaged: {error}") from error
    _checked_size(len(plain))
    if not inflater.eof:
        raise _BadRequestError(HTTPStatus.BAD_REQUEST, "the compressed body is cut short")
    return plain


def _status_body(kind: str, message: str, code: int = _INVALID_ARGUMENT) -> bytes:
    """google.rpc.Status, which OTLP asks for; as protobuf, field 1 is the code and field 2 the message."""
    if kind == JSON_TYPE:
        return orjson.dumps({"code": code, "message": message})
    text = message.encode()[:127]
    return b"\x08" + bytes([code]) + b"\x12" + bytes([len(text)]) + text
