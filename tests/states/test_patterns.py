"""The state inside a one-message prompt."""

import pytest

from milegpo_plugin.config import CreditConfig, StateConfig
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.states import state_keys
from milegpo_plugin.types import Step, Trajectory

ALFWORLD = """
You are an expert agent operating in the ALFRED Embodied Environment. Your task is to: heat an egg
Prior to this step, you have already taken {step} step(s). Below are the most recent 2 observations and actions: {history}
You are now at step {step} and your current observation is: {observation}
Your admissible actions of the current situation are: ['look', 'go to fridge 1'].

Now it's your turn to take an action.
"""
WEBSHOP = """
You are an expert autonomous agent operating in the WebShop e-commerce environment.
Your task is to: buy a lamp.
You are now at step {step} and your current observation is: {observation}.
Your admissible actions of the current situation are:
[
'click[buy now]'
].
"""


def keys_of(*prompts, final=None, **config):
    steps = [Step(observation=[{"role": "user", "content": prompt}]) for prompt in prompts]
    trajectory = Trajectory(task_id="t", rollout_id="r", steps=steps, final_observation=final)
    keys = state_keys([trajectory], StateConfig(**config))
    return keys.steps[0], keys.final[0]


def test_the_alfworld_state_is_the_current_observation_alone():
    seen = "You arrive at fridge 1.\nThe fridge 1 is closed."
    prompts = [
        ALFWORLD.format(step=3, history="[Observation 1: 'hall']", observation=seen),
        ALFWORLD.format(step=9, history="[current observation is: old]", observation=seen),
    ]
    steps, final = keys_of(*prompts, final=seen, pattern="alfworld")
    assert set(steps) == {"You arrive at fridge 1. The fridge 1 is closed."}
    assert final == steps[0]


def test_the_webshop_state_meets_the_raw_page_of_the_end():
    page = "'Back to Search' [SEP] 'Page 1 (Total results: 50)'"
    steps, final = keys_of(WEBSHOP.format(step=2, observation=page), final=page, pattern="webshop")
    assert steps == [page]
    assert final == page


def test_react_takes_the_last_observation():
    prompt = "Question: q\nThought 1: t\nAction 1: Search[x]\nObservation 1: old\nThought 2: u\nAction 2: y\nObservation 2: new one\n"
    assert keys_of(prompt, pattern="react")[0] == ["new one"]


def test_a_pattern_of_ones_own_may_name_its_state_or_use_groups_or_the_whole_match():
    prompt = "step 3 | room: hall | bag: key"
    assert keys_of(prompt, pattern=r"room: (?P<state>\w+)")[0] == ["hall"]
    assert keys_of(prompt, pattern=r"room: (\w+) \| bag: (\w+)")[0] == ["hall key"]
    assert keys_of(prompt, pattern=r"room: \w+")[0] == ["room: hall"]


def test_a_text_without_a_match_counts_as_a_whole():
    assert keys_of("room: hall", "you won", pattern=r"room: (\w+)")[0] == ["hall", "you won"]


def test_a_pattern_that_never_matches_is_refused_in_one_line():
    with pytest.raises(
        ConfigError, match=r"states\.pattern: 'alfworld' matches none of 1 observations"
    ) as error:
        keys_of("something else entirely", pattern="alfworld")
    assert "\n" not in str(error.value)


def test_given_states_need_no_pattern():
    trajectory = Trajectory(task_id="t", rollout_id="r", steps=[Step(state="s")], final_observation="end")
    keys = state_keys([trajectory], StateConfig(pattern="alfworld"))
    assert (keys.steps, keys.final) == ([["s"]], ["end"])


def test_a_pattern_that_does_not_compile_is_a_config_error():
    with pytest.raises(ConfigError, match=r"states\.pattern.*not a regular expression"):
        CreditConfig.load({"states": {"pattern": "("}})
