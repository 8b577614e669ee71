"""The corridor agent of somebody who also tells the gateway where the agent is."""

from __future__ import annotations

import os

import httpx
from corridor_agent import ROOMS, look
from openai import OpenAI


def tell(kind: str, data: dict) -> None:
    headers = {"Authorization": f"Bearer {os.environ['AGL_KEY']}"}
    event = {"event_type": kind, "data": data}
    httpx.post(os.environ["AGL_EVENT_URL"], json=event, headers=headers).raise_for_status()


def play(task: dict) -> float:
    """Walk east through the corridor; every prompt has the same text, only the events differ."""
    client = OpenAI()
    for place in range(len(ROOMS) - 1):
        tell("state", {"state": ROOMS[place]})
        prompt = [{"role": "user", "content": f"Corridor {task['corridor']}: where next?"}]
        client.chat.completions.create(model="any", messages=prompt)
    tell("observation", {"content": look(len(ROOMS) - 1)})
    return 1.0
