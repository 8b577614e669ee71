"""From what a step shows to the text of its key; each distinct text is worked on once."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

from milegpo_plugin.config import StateConfig
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.states.functions import load_function
from milegpo_plugin.states.masks import mask_minted_ids, mask_volatile
from milegpo_plugin.states.patterns import compile_pattern, pick_state
from milegpo_plugin.states.texts import observation_text
from milegpo_plugin.types import Message, Step, Trajectory

EMPTY_STATE: Final = "<empty observation>"
"""Key of an observation without any text."""

_SHOWN_CHARACTERS: Final = 80


class StateReader:
    """Keys under one configuration, with a cache from raw text to key."""

    def __init__(self, config: StateConfig) -> None:
        self._config = config
        self._keys: dict[str, str] = {}
        self._tools_only = config.tool_results_only
        self._sort_json = "json_keys" in config.masks
        self._pattern = compile_pattern(config.pattern) if config.pattern else None
        self._matched = False
        self._function = (
            load_function(config.function) if isinstance(config.function, str) else config.function
        )

    @property
    def has_computed(self) -> bool:
        """Whether any key may come from a text or from the user's function."""
        return bool(self._keys) or self._function is not None

    def step_keys(self, trajectory: Trajectory) -> list[str]:
        """One key per step: the given state, else the computed one."""
        if self._function is not None:
            return [
                self._call_function(step, trajectory) if step.state is None else step.state
                for step in trajectory.steps
            ]
        return [
            self._messages_key(step.observation) if (state := step.state) is None else state
            for step in trajectory.steps
        ]

    def final_key(self, trajectory: Trajectory) -> str | None:
        """The key of the end as a step would have it; None when the end is unknown."""
        if trajectory.final_state is not None or trajectory.final_observation is None:
            return trajectory.final_state
        messages = [_tool_result(trajectory.final_observation)]
        if self._function is not None:
            return self._call_function(Step(observation=messages), trajectory)
        return self._messages_key(messages)

    def names_of(self, given: Iterable[str]) -> dict[str, str]:
        """From the key that a given state's text would have to the given state itself.

        Among given states with one canonical text, the one that is canonical, else the least.
        """
        if self._function is not None:
            return {}
        texts = sorted(given, reverse=True)
        names = {self._messages_key([_tool_result(text)]): text for text in texts}
        return names | {text: text for text in texts}

    @property
    def has_matched(self) -> bool:
        """Whether the pattern fitted a text so far."""
        return self._matched

    def check_pattern(self) -> None:
        """Refuse a pattern that fits none of the texts so far: it was written for another prompt.

        Raises:
            ConfigError: it does not, and there were texts.
        """
        if self._pattern is not None and self._keys and not self._matched:
            text = min(self._keys)[:_SHOWN_CHARACTERS]
            raise ConfigError(
                f"states.pattern: {self._config.pattern!r} matches none of {len(self._keys)} observations, "
                f"the first begins {text!r}; correct the pattern or drop it"
            )

    def _messages_key(self, messages: list[Message]) -> str:
        text = observation_text(messages, self._tools_only, self._sort_json)
        key = self._keys.get(text)
        return self._add_key(text) if key is None else key

    def _add_key(self, text: str) -> str:
        key = self._keys[text] = self._canonical(text)
        return key

    def _canonical(self, text: str) -> str:
        if self._pattern is not None:
            picked = pick_state(text, self._pattern)
            self._matched |= picked is not None
            text = text if picked is None else picked
        text = mask_volatile(mask_minted_ids(text), self._config.masks)
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        return self._white_space(text) or EMPTY_STATE

    def _white_space(self, text: str) -> str:
        if self._config.white_space == "collapse":
            single = text.isprintable() and "  " not in text
            return text.strip() if single else " ".join(text.split())
        return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")

    def _call_function(self, step: Step, trajectory: Trajectory) -> str:
        assert self._function is not None
        where = f"states.function {self._config.function!r}: rollout {trajectory.rollout_id!r}"
        try:
            key = self._function(step)
        except Exception as error:
            raise ConfigError(f"{where}: {type(error).__name__}: {error}") from error
        if not isinstance(key, str):
            raise ConfigError(f"{where}: must return a string, got {key!r}")
        return key or EMPTY_STATE


def _tool_result(text: str) -> Message:
    return {"role": "tool", "content": text}
