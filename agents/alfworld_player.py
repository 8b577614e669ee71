"""An agent that plays ALFWorld: one prompt a step, reasoning and action in tags.

Plain ``openai`` SDK. Model and endpoint come from ``OPENAI_MODEL``, ``OPENAI_BASE_URL`` and
``OPENAI_API_KEY``. The prompt follows GiGPO: the task, the last two steps, the current
observation, and the admissible actions.

Try it: ``python agents/alfworld_player.py .../game.tw-pddl``
"""

import os
import re
import sys

import textworld
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos
from openai import OpenAI
from textworld.envs import PddlEnv

MAX_STEPS = 50
REMEMBERED_STEPS = 2
WIN, INVALID = 10.0, -0.1
TASK = "Your task is to: "

INSTRUCTIONS = """
Now it's your turn to take an action.
First reason step by step about the current situation, within <think> </think> tags. Then choose one
admissible action for the current step and present it within <action> </action> tags."""


def load_game(path: str):
    """One game of ALFWorld's engine."""
    infos = textworld.EnvInfos(admissible_commands=True, won=True, extras=["gamefile"])
    env = AlfredInfos(AlfredDemangler(PddlEnv(infos), shuffle=False))
    env.load(path)
    return env


def write_prompt(task: str, history: list[tuple[str, str]], observation: str, actions: list[str]) -> str:
    """What the model sees at one step."""
    choices = "\n".join(f"'{action}'" for action in actions if action != "help")
    admissible = f"Your admissible actions of the current situation are: [{choices}].\n{INSTRUCTIONS}"
    opening = "You are an expert agent operating in the ALFRED Embodied Environment."
    if not history:
        return f"{opening}\nYour current observation is: {observation}\n{admissible}"
    first = len(history) - len(history[-REMEMBERED_STEPS:]) + 1
    recent = "\n".join(
        f"[Observation {number}: '{seen}', Action {number}: '{done}']"
        for number, (seen, done) in enumerate(history[-REMEMBERED_STEPS:], start=first)
    )
    return (
        f"{opening} Your task is to: {task}\n"
        f"Prior to this step, you have already taken {len(history)} step(s). Below are the most recent "
        f"observations and the corresponding actions you took: {recent}\n"
        f"You are now at step {len(history) + 1} and your current observation is: {observation}\n{admissible}"
    )


def read_action(reply: str) -> tuple[str, bool]:
    """The action in the reply, and whether the reply has the form that was asked for."""
    found = re.search(r"<action>(.*?)</action>", reply, re.DOTALL | re.IGNORECASE)
    if found is None:
        return reply.strip()[-30:].lower(), False
    return found[1].strip().lower(), "<think>" in reply and "</think>" in reply


def play(task: dict) -> float:
    """Play ``{"game": path}``: 10 for a win, less 0.1 for every reply without a proper action."""
    client = OpenAI()
    env = load_game(task["game"])
    state = env.reset()
    goal = state.feedback.partition(TASK)[2].strip()
    history: list[tuple[str, str]] = []
    reward = 0.0
    for _ in range(task.get("max_steps", MAX_STEPS)):
        observation = state.feedback.strip()
        prompt = write_prompt(goal, history, observation, state.admissible_commands)
        completion = client.chat.completions.create(
            model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
            messages=[{"role": "user", "content": prompt}],
        )
        action, is_valid = read_action(completion.choices[0].message.content or "")
        reward += 0.0 if is_valid else INVALID
        state, _, done = env.step(action)
        history.append((observation, action))
        if done or state["won"]:
            break
    return reward + (WIN if state["won"] else 0.0)


if __name__ == "__main__":
    print(play({"game": sys.argv[1]}))
