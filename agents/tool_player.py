"""An agent that plays text games by calling tools; every room offers its own.

Plain ``openai`` SDK. Model and endpoint come from ``OPENAI_MODEL``, ``OPENAI_BASE_URL`` and
``OPENAI_API_KEY``; the games from the tool server at ``GAMES_URL``.

Try it: ``python examples/environments/serve.py &``, then ``python agents/tool_player.py mapreader 7``
"""

import json
import os
import sys

import httpx
from openai import OpenAI

MAX_TURNS = 30
REMEMBERED_TURNS = 4


def request(path: str, body: dict) -> dict:
    """Ask the tool server."""
    url = os.environ.get("GAMES_URL", "http://127.0.0.1:8765")
    return httpx.post(url + path, json=body, timeout=60).raise_for_status().json()


def play(task: dict) -> dict:
    """Play ``{"environment": name, ...}``; say whether it was won and how far it went."""
    client = OpenAI()
    frame = request("/games", {"environment": task["environment"], "task": task})
    game = frame["game"]
    system = f"You play in {frame['setting']}. Act only by calling tools. Your task is to: {frame['goal']}"
    start = [{"role": "system", "content": system}, {"role": "user", "content": frame["observation"]}]
    turns: list[list[dict]] = []
    for _ in range(task.get("max_turns", MAX_TURNS)):
        recent = [message for turn in turns[-REMEMBERED_TURNS:] for message in turn]
        completion = client.chat.completions.create(
            model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
            messages=start + recent,
            tools=frame["tools"],
            tool_choice="required",
            parallel_tool_calls=False,
        )
        reply = completion.choices[0].message
        call = reply.tool_calls[0]
        body = {"name": call.function.name, "arguments": json.loads(call.function.arguments)}
        frame = request(f"/games/{game}/call", body)
        said = {
            "role": "assistant",
            "content": reply.content,
            "tool_calls": [call.model_dump(include={"id", "type", "function"})],
        }
        turns.append([said, {"role": "tool", "tool_call_id": call.id, "content": frame["observation"]}])
        if frame["done"]:
            break
    return {"won": frame["won"], "score": frame["score"]}


if __name__ == "__main__":
    print(play({"environment": sys.argv[1], "seed": int(sys.argv[2])}))
