"""Intake: OTLP files, OTel SDK spans and Agent Lightning store spans → ``Span``.

Knows no dialect. A line that cannot be read is reported by file and line, and the others are
still read. Files are read one request at a time; nothing is kept besides the spans.
"""

from milegpo_plugin.spans.documents import read_document
from milegpo_plugin.spans.files import attach_logs, iter_items, iter_spans, read_spans
from milegpo_plugin.spans.otlp import LogRecord
from milegpo_plugin.spans.protobuf import decode_logs_request, decode_trace_request
from milegpo_plugin.spans.receiver import OtlpServer
from milegpo_plugin.spans.sdk import spans_from_sdk
from milegpo_plugin.spans.spool import Spool
from milegpo_plugin.spans.store import spans_from_store

__all__ = [
    "LogRecord",
    "OtlpServer",
    "Spool",
    "attach_logs",
    "decode_logs_request",
    "decode_trace_request",
    "iter_items",
    "iter_spans",
    "read_document",
    "read_spans",
    "spans_from_sdk",
    "spans_from_store",
]
