"""An agent that looks for a coin in a house, written with smolagents.

Traced by OpenInference. Model and endpoint come from ``OPENAI_MODEL``, ``OPENAI_BASE_URL`` and
``OPENAI_API_KEY``.

Try it against any model: ``python agents/smolagents_walker.py 7``
"""

import os
import sys
from typing import ClassVar

from house import RULES, House
from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from smolagents import LogLevel, OpenAIServerModel, Tool, ToolCallingAgent

SmolagentsInstrumentor().instrument()
MAX_STEPS = 8


class HouseTool(Tool):
    """Something to do in a house."""

    output_type = "string"
    inputs: ClassVar[dict] = {}

    def __init__(self, house: House) -> None:
        super().__init__()
        self.house = house


class Look(HouseTool):
    """Look around."""

    name = "look"
    description = "Look around the room."

    def forward(self) -> str:
        """Do it."""
        return self.house.act("look around")


class Move(HouseTool):
    """Walk."""

    name = "move"
    description = "Walk through an exit of the room."
    inputs: ClassVar[dict] = {
        "direction": {
            "type": "string",
            "enum": ["north", "east", "south", "west"],
            "description": "Where the exit leads.",
        }
    }

    def forward(self, direction: str) -> str:
        """Do it."""
        return self.house.act(f"move {direction}")


class TakeCoin(HouseTool):
    """Take the coin."""

    name = "take_coin"
    description = "Take the coin that lies in this room."

    def forward(self) -> str:
        """Do it."""
        return self.house.act("take coin")


def play(task: dict) -> dict:
    """Look for the coin in house ``{"seed": n}``; say whether it was found."""
    house = House(task)
    agent = ToolCallingAgent(
        tools=[Look(house), Move(house), TakeCoin(house)],
        model=OpenAIServerModel(
            os.environ.get("OPENAI_MODEL", "gpt-4o-mini"), os.environ.get("OPENAI_BASE_URL")
        ),
        instructions=RULES,
        max_steps=MAX_STEPS,
        verbosity_level=LogLevel.ERROR,
    )
    result = agent.run(house.room, return_full_result=True)
    return {"found": house.found, "gave_up": result.state != "success"}


if __name__ == "__main__":
    print(play({"seed": int(sys.argv[1]) if len(sys.argv) > 1 else 1}))
