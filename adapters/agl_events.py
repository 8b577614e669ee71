"""Agent Lightning 1.0: the events of its gateway, one span each.

A ``model_request`` has the wire request and the wire reply, token ids included. A ``reward`` is
read as any reward is. Free events may tell what the environment knows better than the prompt:
``observation`` (what the agent saw), ``state`` (the key of the state it was in) and ``milestone``
(the name of a subgoal that it has just reached).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson
from typing_extensions import override

from milegpo_plugin import semconv
from milegpo_plugin.adapters.base import Dialect, ModelCall, SpanTree
from milegpo_plugin.adapters.completions import read_completion
from milegpo_plugin.adapters.messages import chat_message, read_messages
from milegpo_plugin.adapters.values import as_name, dig
from milegpo_plugin.types import JSON, Message, Span

_DECLARING: Final = frozenset(
    {semconv.AGL_OBSERVATION_EVENT, semconv.AGL_STATE_EVENT, semconv.AGL_MILESTONE_EVENT}
)
_CONTENT_KEYS: Final = ("content", "value", "name", "text")


class AglEvents(Dialect):
    """Events of the gateway of Agent Lightning 1.0."""

    name = "agentlightning_events"

    @override
    def recognises(self, span: Span) -> bool:
        """By the key that the intake of events writes."""
        return semconv.AGL_EVENT_TYPE in span.attributes

    @override
    def read_call(self, span: Span, tree: SpanTree) -> ModelCall | None:
        """A ``model_request``: chat completions, or the older completions of a bare prompt."""
        data = span.attributes.get(semconv.AGL_EVENT_DATA)
        if span.attributes[semconv.AGL_EVENT_TYPE] != semconv.AGL_MODEL_REQUEST_EVENT:
            return None
        fields = read_completion(dig(data, "response"))
        fields["model"] = as_name(dig(data, "model")) or fields.get("model")
        return ModelCall(
            span=span,
            messages=_request_messages(dig(data, "request")),
            **{"reply": _completed_text(dig(data, "response")), **fields},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What an agent or its environment said about the state between two model calls.

    ``kind`` is ``observation``, ``state`` or ``milestone``. ``content`` is None when the event has
    none; an observation is text or messages, the others are made text.
    """

    span: Span
    kind: str
    content: JSON

    @property
    def text(self) -> str | None:
        """The content as a state key: text as it is, anything else as JSON with sorted keys."""
        if self.content is None or isinstance(self.content, str):
            return self.content
        return orjson.dumps(self.content, default=str, option=orjson.OPT_SORT_KEYS).decode()

    @property
    def messages(self) -> list[Message]:
        """The content as messages; a text is one of the user's."""
        if isinstance(self.content, list):
            return read_messages(self.content)
        return [] if self.text is None else [chat_message("user", self.text)]


def read_declared(span: Span) -> Declared | None:
    """The free event that ``span`` is, when it is of a kind that credit uses."""
    kind = as_name(span.attributes.get(semconv.AGL_EVENT_TYPE))
    if kind is None or kind not in _DECLARING:
        return None
    return Declared(span=span, kind=kind, content=_content(kind, span.attributes.get(semconv.AGL_EVENT_DATA)))


def _request_messages(request: JSON) -> list[Message]:
    """The request's messages; a prompt of token ids counts as its ids written out."""
    if "messages" in (request or {}):
        return read_messages(request["messages"])
    prompt = dig(request, "prompt")
    if isinstance(prompt, list) and all(isinstance(part, str) for part in prompt):
        prompt = prompt[0] if len(prompt) == 1 else prompt
    if prompt is None:
        return []
    return [chat_message("user", prompt if isinstance(prompt, str) else orjson.dumps(prompt).decode())]


def _completed_text(response: JSON) -> Message | None:
    """The answer of the completions API."""
    text = dig(response, "choices", 0, "text")
    return chat_message("assistant", text) if isinstance(text, str) else None


def _content(kind: str, data: JSON) -> JSON:
    """The value under the event's own name, else under a usual one, else all of the data."""
    if not isinstance(data, Mapping):
        return data
    key = next((key for key in (kind, *_CONTENT_KEYS) if data.get(key) is not None), None)
    return data[key] if key is not None else data or None
