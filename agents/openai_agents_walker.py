"""An agent that looks for a coin in a house, written with the OpenAI Agents SDK.

Traced by OpenInference. Model and endpoint come from ``OPENAI_MODEL``, ``OPENAI_BASE_URL`` and
``OPENAI_API_KEY``.

Try it against any model: ``python agents/openai_agents_walker.py 7``
"""

import os
import sys
from typing import Literal

from house import RULES, House
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

from agents import (
    Agent,
    MaxTurnsExceeded,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    ToolsToFinalOutputResult,
    function_tool,
)

OpenAIAgentsInstrumentor().instrument()
MAX_TURNS = 8


def build_agent(house: House) -> Agent:
    """The agent and its tools."""

    @function_tool
    def look() -> str:
        """Look around the room."""
        return house.act("look around")

    @function_tool
    def move(direction: Literal["north", "east", "south", "west"]) -> str:
        """Walk through an exit of the room."""
        return house.act(f"move {direction}")

    @function_tool
    def take_coin() -> str:
        """Take the coin that lies in this room."""
        return house.act("take coin")

    return Agent(
        name="walker",
        instructions=RULES,
        tools=[look, move, take_coin],
        model=OpenAIChatCompletionsModel(os.environ.get("OPENAI_MODEL", "gpt-4o-mini"), AsyncOpenAI()),
        model_settings=ModelSettings(tool_choice="required"),
        reset_tool_choice=False,
        tool_use_behavior=lambda *_: ToolsToFinalOutputResult(house.found, "found"),
    )


def play(task: dict) -> dict:
    """Look for the coin in house ``{"seed": n}``; say whether it was found."""
    house = House(task)
    try:
        Runner.run_sync(build_agent(house), house.room, max_turns=MAX_TURNS)
    except MaxTurnsExceeded:
        return {"found": house.found, "gave_up": True}
    return {"found": house.found, "gave_up": False}


if __name__ == "__main__":
    print(play({"seed": int(sys.argv[1]) if len(sys.argv) > 1 else 1}))
