"""What every environment here is: a game with a goal, seen one frame at a time.

Two ways to act on the same game: a command in words, as the prompts of GiGPO, GraphGPO and MileGPO
ask for between ``<action>`` tags, or a call of a tool whose arguments are filled into a command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class GameError(ValueError):
    """A task or an action that a game cannot take."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What the player sees after an action.

    ``score`` is the share of the task that is done, 0 to 1; ``won`` means all of it.
    """

    observation: str
    actions: tuple[str, ...]
    score: float = 0.0
    done: bool = False
    won: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """A command as a function: ``take {item} from {place}`` takes an item and a place."""

    name: str
    description: str
    command: str

    @property
    def parameters(self) -> list[str]:
        """Names of the blanks in the command."""
        return re.findall(r"{(\w+)}", self.command)

    def choices(self, actions: Sequence[str]) -> dict[str, list[str]] | None:
        """The values each blank has among the possible actions; None when none of them fits."""
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(self.command))
        found = [match.groupdict() for action in actions if (match := re.fullmatch(pattern, action))]
        if not found:
            return None
        return {name: sorted({values[name] for values in found}) for name in self.parameters}

    def write(self, arguments: Mapping[str, Any]) -> str:
        """The command with its blanks filled in.

        Raises:
            GameError: an argument is missing.
        """
        missing = [name for name in self.parameters if name not in arguments]
        if missing:
            raise GameError(f"{self.name} needs {', '.join(missing)}")
        return self.command.format_map({name: arguments[name] for name in self.parameters})


class Game(Protocol):
    """One playable task. ``setting`` completes "You are an expert agent operating in …"."""

    setting: str
    goal: str
    tools: Sequence[Tool]

    def start(self, task: Mapping[str, Any]) -> Frame:
        """Begin a task; may be called again for the next one."""

    def act(self, command: str) -> Frame:
        """Do what the command says; a wrong command costs a step and changes nothing."""


def tool_schemas(tools: Sequence[Tool], actions: Sequence[str]) -> list[dict[str, Any]]:
    """The tools that make sense now, in OpenAI's form; every parameter lists its possible values."""
    schemas = []
    for tool in tools:
        choices = tool.choices(actions)
        if choices is None:
            continue
        parameters = {
            "type": "object",
            "properties": {name: _value_schema(values) for name, values in choices.items()},
            "required": list(choices),
            "additionalProperties": False,
        }
        function = {"name": tool.name, "description": tool.description, "parameters": parameters}
        schemas.append({"type": "function", "function": function})
    return schemas


def _value_schema(values: Sequence[str]) -> dict[str, Any]:
    """One of the values; ``<...>`` among them stands for words of the player's own."""
    if any(re.fullmatch("<.*>", value) for value in values):
        return {"type": "string"}
    return {"type": "string", "enum": list(values)}


def tool_command(tools: Sequence[Tool], name: str, arguments: Mapping[str, Any]) -> str:
    """The command behind a tool call.

    Raises:
        GameError: there is no such tool, or an argument is missing.
    """
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        raise GameError(f"no tool {name!r}; there are {', '.join(tool.name for tool in tools)}")
    return tool.write(arguments)
