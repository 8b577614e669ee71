"""When two steps took the same action: by their tool calls, else by their text."""

from __future__ import annotations

import json
import re
from typing import Final

from milegpo_plugin.types import Action

_TAGGED: Final = r".*<action>(?P<action>.*?)</action>"
"""What prompts of the ALFWorld and WebShop protocol ask for; reasoning stands before it."""


def compile_action_pattern(pattern: str | None) -> re.Pattern[str]:
    """The user's pattern, or the last ``<action>`` element; the dot matches line ends."""
    return re.compile(pattern or _TAGGED, re.DOTALL)


def action_key(action: Action, pattern: re.Pattern[str]) -> str | None:
    """Tool names and arguments; without a call the text, as far as the pattern picks it; None if unknown."""
    if action.tool_calls:
        calls = [[call.name, call.arguments] for call in action.tool_calls]
        return json.dumps(calls, sort_keys=True, ensure_ascii=False, default=str)
    if not action.text:
        return None
    match = pattern.search(action.text)
    if match is None:
        return " ".join(action.text.split())
    picked = match["action"] if "action" in pattern.groupindex else match[pattern.groups and 1]
    return " ".join((picked or "").split())
