"""An agent that plays text games by thinking aloud: one prompt a step, its action between tags.

``litellm``, with OpenInference if it is installed. Model and endpoint come from ``OPENAI_MODEL``,
``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``; the games from the tool server at ``GAMES_URL``.

Try it: ``python examples/environments/serve.py &``, then ``python agents/react_player.py coin 7``
"""

import os
import re
import sys

import httpx
import litellm
from openinference.instrumentation.litellm import LiteLLMInstrumentor

LiteLLMInstrumentor().instrument()

MAX_STEPS = 30
REMEMBERED_STEPS = 2
WIN, INVALID = 10.0, -0.1

INSTRUCTIONS = """
Now it's your turn to take an action.
First reason step by step about the current situation, within <think> </think> tags. Then choose one
admissible action for the current step and present it within <action> </action> tags."""


def request(path: str, body: dict) -> dict:
    """Ask the tool server."""
    url = os.environ.get("GAMES_URL", "http://127.0.0.1:8765")
    return httpx.post(url + path, json=body, timeout=60).raise_for_status().json()


def write_prompt(frame: dict, history: list[tuple[str, str]]) -> str:
    """What the model sees at one step."""
    lines = [f"You are an expert agent operating in {frame['setting']}. Your task is to: {frame['goal']}"]
    if history:
        first = len(history) - len(history[-REMEMBERED_STEPS:]) + 1
        recent = "\n".join(
            f"[Observation {number}: '{seen}', Action {number}: '{done}']"
            for number, (seen, done) in enumerate(history[-REMEMBERED_STEPS:], start=first)
        )
        lines.append(
            f"Prior to this step, you have already taken {len(history)} step(s). Below are the most recent "
            f"observations and the corresponding actions you took: {recent}"
        )
    choices = "\n".join(f"'{action}'" for action in frame["actions"])
    lines.append(
        f"You are now at step {len(history) + 1} and your current observation is: {frame['observation']}"
    )
    lines.append(f"Your admissible actions of the current situation are: [{choices}].\n{INSTRUCTIONS}")
    return "\n".join(lines)


def read_action(reply: str) -> tuple[str, bool]:
    """The action in the reply, and whether the reply has the form that was asked for."""
    found = re.search(r"<action>(.*?)</action>", reply, re.DOTALL | re.IGNORECASE)
    if found is None:
        return reply.strip()[-30:], False
    return found[1].strip(), "<think>" in reply and "</think>" in reply


def play(task: dict) -> float:
    """Play ``{"environment": name, ...}``: 10 for a win, less 0.1 for every reply of the wrong form."""
    frame = request("/games", {"environment": task["environment"], "task": task})
    game, history, reward = frame["game"], [], 0.0
    for _ in range(task.get("max_steps", MAX_STEPS)):
        completion = litellm.completion(
            model="openai/" + os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
            messages=[{"role": "user", "content": write_prompt(frame, history)}],
        )
        action, is_valid = read_action(completion.choices[0].message.content or "")
        reward += 0.0 if is_valid else INVALID
        history.append((frame["observation"], action))
        frame = request(f"/games/{game}/act", {"action": action})
        if frame["done"]:
            break
    return reward + (WIN if frame["won"] else 0.0)


if __name__ == "__main__":
    print(play({"environment": sys.argv[1], "seed": int(sys.argv[2])}))
