"""OpenInference for the openai client: chat completions and the Responses API.

Messages are flattened (``llm.input_messages.N.message.…``); the raw reply in ``output.value`` has
the response id and, from a server that sends them, token ids and log-probabilities.
"""

from __future__ import annotations

from typing_extensions import override

from milegpo_plugin.adapters.openinference import OpenInferenceDialect, is_from
from milegpo_plugin.types import Span


class OpenInferenceOpenAI(OpenInferenceDialect):
    """``ChatCompletion`` and ``Response`` spans."""

    name = "openinference_openai"

    @override
    def recognises(self, span: Span) -> bool:
        """By the scope; without one (store spans) by the names of its spans."""
        return is_from(span, "openai") or (
            not span.scope
            and self.is_call(span)
            and span.name in ("ChatCompletion", "Response", "Completion")
        )
