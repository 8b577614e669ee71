"""OTLP protobuf, one message or many with length prefixes → requests in their JSON form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_FIRST_FIELD = b"\x0a"
"""Tag of field 1, length-delimited: how every non-empty OTLP request begins."""


def decode_trace_request(data: bytes) -> dict[str, Any]:
    """One ExportTraceServiceRequest in its JSON form.

    Raises:
        DecodeError: ``data`` is not such a message.
    """
    return _decode(ExportTraceServiceRequest(), data)


def decode_logs_request(data: bytes) -> dict[str, Any]:
    """One ExportLogsServiceRequest in its JSON form.

    Raises:
        DecodeError: ``data`` is not such a message.
    """
    return _decode(ExportLogsServiceRequest(), data)


def split_messages(stream: IO[bytes]) -> Iterator[bytes]:
    """The encoded messages of a stream, read one at a time where they carry length prefixes.

    Raises:
        DecodeError: the last message is cut short.
    """
    head = stream.read(1)
    if head == _FIRST_FIELD and not _is_prefixed(stream):
        yield head + stream.read()
        return
    while head:
        size = _read_varint(head, stream)
        message = stream.read(size)
        if len(message) < size:
            raise DecodeError(f"a message of {size} bytes ends after {len(message)}")
        yield message
        head = stream.read(1)


def _is_prefixed(stream: IO[bytes]) -> bool:
    """Tell a prefix of 10 bytes from the tag of field 1: only the former is followed by a tag.

    In an unprefixed request the next bytes are a length and then the tag of a ResourceSpans field.
    """
    position = stream.tell()
    message = stream.read(10)
    stream.seek(position)
    if len(message) < 10 or not message.startswith(_FIRST_FIELD):
        return False
    try:
        ExportTraceServiceRequest.FromString(message)
    except DecodeError:
        return False
    return True


def _read_varint(head: bytes, stream: IO[bytes]) -> int:
    value, shift, byte = 0, 0, head
    while byte:
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7
        byte = stream.read(1)
    raise DecodeError("a length prefix is cut short")


def _decode(message: Message, data: bytes) -> dict[str, Any]:
    message.ParseFromString(data)
    document: dict[str, Any] = MessageToDict(message, use_integers_for_enums=True)
    return document
