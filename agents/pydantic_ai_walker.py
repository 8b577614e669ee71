"""An agent that looks for a coin in a house, written with pydantic-ai.

Traced by pydantic-ai's own instrumentation. Model and endpoint come from ``OPENAI_MODEL``,
``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``.

Try it against any model: ``python agents/pydantic_ai_walker.py 7``
"""

import os
import sys
from typing import Literal

from house import RULES, House
from pydantic_ai import Agent, RunContext, UsageLimitExceeded, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel

Agent.instrument_all()
MAX_REQUESTS = 8
walker = Agent(deps_type=House, instructions=RULES)


@walker.tool
def look(run: RunContext[House]) -> str:
    """Look around the room."""
    return run.deps.act("look around")


@walker.tool
def move(run: RunContext[House], direction: Literal["north", "east", "south", "west"]) -> str:
    """Walk through an exit of the room."""
    return run.deps.act(f"move {direction}")


@walker.tool
def take_coin(run: RunContext[House]) -> str:
    """Take the coin that lies in this room."""
    return run.deps.act("take coin")


def play(task: dict) -> dict:
    """Look for the coin in house ``{"seed": n}``; say whether it was found."""
    house = House(task)
    model = OpenAIChatModel(os.environ.get("OPENAI_MODEL", "gpt-4o-mini"))
    try:
        walker.run_sync(
            house.room, model=model, deps=house, usage_limits=UsageLimits(request_limit=MAX_REQUESTS)
        )
    except UsageLimitExceeded:
        return {"found": house.found, "gave_up": True}
    return {"found": house.found, "gave_up": False}


if __name__ == "__main__":
    print(play({"seed": int(sys.argv[1]) if len(sys.argv) > 1 else 1}))
