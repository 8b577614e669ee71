"""An agent that shops in WebShop: one prompt a step, reasoning and action in tags.

Plain ``openai`` SDK. Model and endpoint come from ``OPENAI_MODEL``, ``OPENAI_BASE_URL`` and
``OPENAI_API_KEY``. The environment is ``web_agent_site`` of a princeton-nlp/WebShop checkout. The
prompt follows GiGPO: the task, the last two steps, the current observation, and the actions.

Try it: ``python agents/webshop_player.py 3``
"""

import functools
import os
import re
import sys

from openai import OpenAI

MAX_STEPS = 15
REMEMBERED_STEPS = 2
WIN, INVALID = 10.0, -0.1

INSTRUCTIONS = """
Now it's your turn to take one action for the current step.
First reason step by step about the current situation, within <think> </think> tags. Then choose one
admissible action for the current step and present it within <action> </action> tags."""


@functools.cache
def load_shop():
    """One shop a process; loading its products takes a while."""
    from web_agent_site.envs import WebAgentTextEnv

    return WebAgentTextEnv(
        observation_mode="text", num_products=int(os.environ.get("WEBSHOP_PRODUCTS", "1000"))
    )


def admissible_actions(available: dict) -> list[str]:
    """The shop's buttons and search bar as actions."""
    search = ["search[<your query>]"] if available["has_search_bar"] else []
    return search + [f"click[{name}]" for name in available["clickables"] if name != "search"]


def write_prompt(task: str, history: list[tuple[str, str]], page: str, actions: list[str]) -> str:
    """What the model sees at one step."""
    choices = ",\n".join(f"'{action}'" for action in actions)
    opening = (
        "You are an expert autonomous agent operating in the WebShop e-commerce environment.\n"
        f"Your task is to: {task}.\n"
    )
    admissible = f"Your admissible actions of the current situation are: [\n{choices}\n].\n{INSTRUCTIONS}"
    if not history:
        return f"{opening}Your current observation is: {page}.\n{admissible}"
    first = len(history) - len(history[-REMEMBERED_STEPS:]) + 1
    recent = "\n".join(
        f"[Observation {number}: '{seen}', Action {number}: '{done}']"
        for number, (seen, done) in enumerate(history[-REMEMBERED_STEPS:], start=first)
    )
    return (
        f"{opening}Prior to this step, you have already taken {len(history)} step(s). Below are the most "
        f"recent observations and the corresponding actions you took: {recent}\n"
        f"You are now at step {len(history) + 1} and your current observation is: {page}.\n{admissible}"
    )


def read_action(reply: str) -> tuple[str, bool]:
    """The action in the reply, and whether the reply has the form that was asked for."""
    found = re.search(r"<action>(.*?)</action>", reply, re.DOTALL | re.IGNORECASE)
    if found is None:
        return reply.strip()[-20:].lower(), False
    return found[1].strip().lower(), "<think>" in reply and "</think>" in reply


def split_page(observation: str) -> tuple[str, str]:
    """Instruction and page: parts between ``[SEP]``, the instruction after its heading."""
    parts = [part.strip() for part in observation.split("[SEP]")]
    heading = parts.index("Instruction:") if "Instruction:" in parts else 0
    return parts[heading + 1], " [SEP] ".join(f"'{part}'" for part in parts[heading + 2 :])


def play(task: dict) -> float:
    """Shop for goal ``{"goal": n}``: 10 for a full match, less 0.1 for every improper reply."""
    client = OpenAI()
    shop = load_shop()
    observation, _ = shop.reset(session=task["goal"])
    history: list[tuple[str, str]] = []
    reward = score = 0.0
    for _ in range(task.get("max_steps", MAX_STEPS)):
        goal, page = split_page(observation)
        prompt = write_prompt(goal, history, page, admissible_actions(shop.get_available_actions()))
        completion = client.chat.completions.create(
            model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
            messages=[{"role": "user", "content": prompt}],
        )
        action, is_valid = read_action(completion.choices[0].message.content or "")
        reward += 0.0 if is_valid else INVALID
        observation, score, done, _ = shop.step(action)
        history.append((page, action))
        if done:
            break
    return reward + (WIN if score >= 1.0 else 0.0)


if __name__ == "__main__":
    print(play({"goal": int(sys.argv[1])}))
