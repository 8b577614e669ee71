"""An agent that knows no platform: it walks through rooms until it finds the coin in room 2."""

import os

from openai import OpenAI

TURNS = 5


def play(task: dict) -> float:
    client = OpenAI(max_retries=0, timeout=60)
    room = task["start"]
    for _ in range(TURNS):
        completion = client.chat.completions.create(
            model=os.environ["OPENAI_MODEL"],
            messages=[{"role": "user", "content": f"room {room}"}],
        )
        room += 1 if "right" in (completion.choices[0].message.content or "") else -1
        if room == 2:
            return 1.0
    return 0.0
