"""OpenInference for LiteLLM: ``completion`` spans, each a trace of its own.

The flattened tool results have no call id, so the raw request in ``input.value`` is read first.
The raw reply is JSON, with token ids, only when the reply has no text; else it is the bare text.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from milegpo_plugin.adapters.openinference import OpenInferenceDialect, is_from
from milegpo_plugin.types import JSON, Message, Span


class OpenInferenceLiteLLM(OpenInferenceDialect):
    """``completion``, ``acompletion`` and ``responses`` spans."""

    name = "openinference_litellm"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope: its keys are those of the conventions."""
        return is_from(span, "litellm")

    @override
    def read_request(self, attributes: dict[str, JSON], request: JSON) -> tuple[Sequence[Message], int]:
        raw = self.read_raw_request(request)
        return (raw, 0) if raw else super().read_request(attributes, request)
