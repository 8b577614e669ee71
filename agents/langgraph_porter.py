"""An agent that carries a parcel through a house, written with LangGraph.

Model and endpoint come from ``OPENAI_MODEL``, ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``.

Try it against any model: ``python agents/langgraph_porter.py 7``
"""

import os
import random
import sys
from typing import Literal

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from langgraph.prebuilt import create_react_agent

SYSTEM = "You are a porter. Find the parcel, take it, and put it down in the hall. Act only by calling tools."
ROOMS = ("hall", "kitchen", "study", "cellar", "attic", "garden")
TURNS = 16


class House:
    """Rooms along a corridor in random order, and a parcel in one of them."""

    def __init__(self, seed: int) -> None:
        dice = random.Random(seed)
        self.rooms = dice.sample(ROOMS, len(ROOMS))
        self.place = self.rooms.index("hall")
        self.parcel = dice.choice([i for i in range(len(ROOMS)) if i != self.place])
        self.carried = self.delivered = False

    def describe(self) -> str:
        """What the porter sees."""
        ways = [name for name, step in (("west", -1), ("east", 1)) if 0 <= self.place + step < len(ROOMS)]
        here = " A parcel lies here." if self.parcel == self.place and not self.carried else ""
        hands = "You carry the parcel." if self.carried else "Your hands are empty."
        return f"You are in the {self.rooms[self.place]}. Ways: {', '.join(ways)}.{here} {hands}"

    def walk(self, direction: str) -> str:
        """Move one room west or east."""
        place = self.place + {"west": -1, "east": 1}.get(direction, len(ROOMS))
        if not 0 <= place < len(ROOMS):
            return f"There is no way {direction}."
        self.place = place
        return self.describe()

    def take(self) -> str:
        """Pick the parcel up."""
        if self.parcel != self.place or self.carried:
            return "There is no parcel to take."
        self.carried = True
        return self.describe()

    def put_down(self) -> str:
        """Leave the parcel here."""
        if not self.carried:
            return "You carry nothing."
        self.carried, self.parcel = False, self.place
        self.delivered = self.rooms[self.place] == "hall"
        return "The parcel is delivered." if self.delivered else self.describe()


def house_tools(house: House) -> list:
    """The house as tools."""

    @tool
    def walk(direction: Literal["west", "east"]) -> str:
        """Walk "west" or "east" into the next room."""
        return house.walk(direction)

    @tool
    def take_parcel() -> str:
        """Take the parcel that lies here."""
        return house.take()

    @tool
    def put_parcel_down() -> str:
        """Put the parcel down in this room."""
        return house.put_down()

    return [walk, take_parcel, put_parcel_down]


def play(task: dict) -> dict:
    """Carry the parcel of house ``{"seed": n}``; say whether it was delivered."""
    house = House(task["seed"])
    model = ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"))
    agent = create_react_agent(model, house_tools(house), prompt=SYSTEM)
    start = {"messages": [("user", house.describe())]}
    try:
        agent.invoke(start, {"recursion_limit": 2 * TURNS})
    except GraphRecursionError:
        return {"delivered": house.delivered, "gave_up": True}
    return {"delivered": house.delivered, "gave_up": False}


if __name__ == "__main__":
    print(play({"seed": int(sys.argv[1]) if len(sys.argv) > 1 else 1}))
