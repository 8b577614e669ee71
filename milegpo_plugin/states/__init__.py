"""Canonical state keys: which steps of a task's rollouts stand in the same place (method.md §7)."""

from milegpo_plugin.states.keys import EMPTY_STATE, StateKeys, state_keys

__all__ = ["EMPTY_STATE", "StateKeys", "state_keys"]
