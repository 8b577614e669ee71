"""An agent that looks for a key in a corridor of rooms. Plain ``openai`` SDK, function calling.

Endpoint and key come from the SDK's own variables, ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``.
"""

import json

from openai import OpenAI

ROOMS = ["hall", "kitchen", "cellar", "attic"]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "move",
            "description": "Walk along the corridor.",
            "parameters": {
                "type": "object",
                "properties": {"direction": {"type": "string", "enum": ["east", "west"]}},
                "required": ["direction"],
            },
        },
    }
]


def look(place: int) -> str:
    return f"You are in the {ROOMS[place]}." + (" The key is here." if place == len(ROOMS) - 1 else "")


def play(task: dict) -> dict:
    """Walk for at most ``max_turns`` turns; say whether the key was found."""
    client = OpenAI()
    place = 0
    messages = [
        {"role": "system", "content": "Find the key."},
        {"role": "user", "content": f"Corridor {task['corridor']}. {look(place)}"},
    ]
    for turn in range(task.get("max_turns", 5)):
        if turn == task.get("crash_at"):
            raise RuntimeError("the corridor fell in")
        reply = client.chat.completions.create(model="any", messages=messages, tools=TOOLS).choices[0].message
        call = reply.tool_calls[0]
        direction = json.loads(call.function.arguments)["direction"]
        place = max(0, min(len(ROOMS) - 1, place + (1 if direction == "east" else -1)))
        messages.append(
            {
                "role": "assistant",
                "content": reply.content,
                "tool_calls": [call.model_dump(include={"id", "type", "function"})],
            }
        )
        messages.append({"role": "tool", "tool_call_id": call.id, "content": look(place)})
        if place == len(ROOMS) - 1:
            break
    return {"found": place == len(ROOMS) - 1}


def reward(task: dict, result: dict) -> float:
    """1 when the key was found."""
    return float(result["found"])
