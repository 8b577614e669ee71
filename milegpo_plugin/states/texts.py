"""The text of an observation: what the policy newly saw, without roles, ids or other message fields."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Final

from milegpo_plugin.states.masks import ID_PLACEHOLDER, sort_json_keys
from milegpo_plugin.types import JSON, Message

_NOT_OBSERVED: Final = frozenset({"system", "developer", "assistant"})
_TOOL_ROLES: Final = frozenset({"tool", "function"})
_LEAST_ID_LENGTH: Final = 6


def observation_text(messages: Sequence[Message], tool_results_only: bool, sort_json: bool) -> str:
    """One text from the tool results and user messages, in their order, joined by line ends."""
    if len(messages) == 1 and (message := messages[0]).get("role") not in _NOT_OBSERVED:
        content = message.get("content")
        if isinstance(content, str) and not sort_json and not message.get("tool_call_id"):
            return content
        return _message_text(message, sort_json)
    observed = _observed(messages, tool_results_only)
    return "\n".join([_message_text(message, sort_json) for message in observed])


def _observed(messages: Sequence[Message], tool_results_only: bool) -> list[Message]:
    observed = [message for message in messages if message.get("role") not in _NOT_OBSERVED]
    if not tool_results_only:
        return observed
    return [message for message in observed if message.get("role") in _TOOL_ROLES] or observed


def _message_text(message: Message, sort_json: bool) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else _content_text(content)
    call_id = message.get("tool_call_id")
    if call_id and call_id in text and _is_distinctive(call_id):
        text = text.replace(call_id, ID_PLACEHOLDER)
    return sort_json_keys(text) if sort_json else text


def _is_distinctive(call_id: str) -> bool:
    """A short id such as ``1`` is also an ordinary word of the text."""
    return len(call_id) >= _LEAST_ID_LENGTH and any(letter.isdigit() for letter in call_id)


def _content_text(content: JSON) -> str:
    """Content that is not a string: nothing, OpenAI content parts, or a structured tool result."""
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(_part_text(part) for part in content)
    return _as_json(content)


def _part_text(part: JSON) -> str:
    """The text of a text part; an image, sound or file by the digest of its content."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    if isinstance(part, dict) and "type" in part:
        digest = hashlib.blake2b(_as_json(part).encode(errors="surrogatepass"), digest_size=8)
        return f"<{part['type']} {digest.hexdigest()}>"
    return _as_json(part)


def _as_json(value: JSON) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
