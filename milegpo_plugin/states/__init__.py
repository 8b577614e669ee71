"""Canonical state keys: which steps of a task's rollouts stand in the same place (method.md §7)."""

from milegpo_plugin.states.actions import action_key, compile_action_pattern
from milegpo_plugin.states.keys import HISTORY_SEPARATOR, StateKeys, state_keys
from milegpo_plugin.states.patterns import PATTERNS
from milegpo_plugin.states.reader import EMPTY_STATE

__all__ = [
    "EMPTY_STATE",
    "HISTORY_SEPARATOR",
    "PATTERNS",
    "StateKeys",
    "action_key",
    "compile_action_pattern",
    "state_keys",
]
