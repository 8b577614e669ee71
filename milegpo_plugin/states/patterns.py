"""Ready-made expressions that pick the current observation out of a one-message prompt.

The ALFWorld and WebShop prompts of GiGPO, GraphGPO and MileGPO hold the task, a step counter,
recent observations and actions, the current observation and the admissible actions. Only the
current observation is the state. The last mention counts, since a history may repeat the phrase.
"""

from __future__ import annotations

import re
from typing import Final

PATTERNS: Final[dict[str, str]] = {
    "alfworld": r".*\bcurrent observation is:\s*(?P<state>.*?)\s*(?=Your admissible actions\b|\Z)",
    "webshop": r".*\bcurrent observation is:\s*(?P<state>.*?)\.?\s*(?=Your admissible actions\b|\Z)",
    "react": r".*(?:\A|\n)[ \t]*Observation[ \t]*\d*:\s*(?P<state>.*?)\s*(?=\n[ \t]*(?:Thought|Action)[ \t]*\d*:|\Z)",
}
"""WebShop's prompt closes the observation with a full stop of its own; ``react`` takes the last Observation."""


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A ready-made pattern by its name, or the user's own; the dot matches line ends."""
    return re.compile(PATTERNS.get(pattern, pattern), re.DOTALL)


def pick_state(text: str, pattern: re.Pattern[str]) -> str | None:
    """The group ``state``, else all groups, else the whole match; None without a match."""
    match = pattern.search(text)
    if match is None:
        return None
    if "state" in pattern.groupindex:
        return match["state"] or ""
    if pattern.groups:
        return "\n".join(group for group in match.groups() if group is not None)
    return match[0]
