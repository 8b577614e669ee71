"""Trace text as it may be shown: bounded in length, free of control and direction-override characters.

Whatever an agent read or wrote is data. What is taken out stays visible as its code point.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from milegpo_plugin.types import Action, Message

_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""Control characters except tab and line feed, lone surrogates, direction overrides and isolates."""


def clean(text: str, limit: int) -> str:
    """At most ``limit`` characters of the text, with a note of how many more there are.

    Control characters, lone surrogates and direction overrides become ``⟨U+…⟩``, so that they can
    neither hide nor reorder what stands around them.
    """
    shown = _UNSAFE.sub(_code_point, text[:limit].replace("\r\n", "\n"))
    return shown if len(text) <= limit else f"{shown} … ({len(text) - limit:,} more characters)"


def one_line(text: str, limit: int) -> str:
    """The text on one line, cut with an ellipsis."""
    words = " ".join(clean(text[: 4 * limit], 4 * limit).split())
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def action_text(action: Action) -> str:
    """What the policy did: its tool calls as ``name(argument=value)``, else its text."""
    calls = [f"{call.name}({_arguments(call.arguments)})" for call in action.tool_calls]
    return ", ".join(calls) or action.text or "(no output)"


def observation_text(messages: list[Message]) -> str:
    """The new messages of a step, one after the other, each behind its role."""
    return "\n\n".join(f"{message.get('role') or '?'}: {_content(message)}" for message in messages)


def _code_point(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match[0]):04X}⟩"


def _arguments(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_json(value)}" for name, value in arguments.items())


def _content(message: Message) -> str:
    """Text of a message; parts of a multi-part message one after the other."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    calls = "\n".join(_json(call.get("function", call)) for call in message.get("tool_calls") or [])
    return calls if content is None else content if isinstance(content, str) else _json(content)


def _part(part: Any) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    return (
        part
        if isinstance(part, str)
        else f"[{part.get('type', 'part') if isinstance(part, dict) else 'part'}]"
    )


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()
