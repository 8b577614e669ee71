"""A key of the user's own."""

import json

import pytest

from milegpo_plugin.config import CreditConfig, StateConfig
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.states import EMPTY_STATE, state_keys
from milegpo_plugin.types import Step, Trajectory

SOURCE = """
def room(step):
    return step.observation[-1]["content"].split(":")[0]

def broken(step):
    return {}["nothing"]

def wrong(step):
    return 3

name = "not a function"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my_states.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def keys_of(function, *texts, final=None):
    steps = [Step(observation=[{"role": "tool", "content": text}]) for text in texts]
    trajectory = Trajectory(task_id="t", rollout_id="r7", steps=steps, final_observation=final)
    keys = state_keys([trajectory], StateConfig(function=function))
    return keys.steps[0], keys.final[0]


def test_a_function_in_a_file_makes_the_keys_of_steps_and_end(file):
    assert keys_of(f"{file}:room", "hall: 1", "study: 2", final="hall: 9") == (["hall", "study"], "hall")


def test_a_function_may_be_named_by_its_module_or_passed_as_it_is():
    assert keys_of(lambda step: "k", "a") == (["k"], None)
    assert keys_of("builtins:repr", "a")[0] == keys_of("builtins.repr", "a")[0]


def test_an_empty_result_is_the_empty_state():
    assert keys_of(lambda step: "", "a")[0] == [EMPTY_STATE]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "rollout 'r7': KeyError: 'nothing'"),
        ("wrong", "rollout 'r7': must return a string, got 3"),
        ("name", "has no function 'name'"),
        ("missing", "has no function 'missing'"),
    ],
)
def test_a_function_that_fails_is_named_with_its_rollout(file, name, message):
    with pytest.raises(ConfigError) as error:
        keys_of(f"{file}:{name}", "a")
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["nowhere.py:f", "no_such_module_here:f", "plainword"])
def test_a_place_that_does_not_exist_is_a_config_error(name):
    with pytest.raises(ConfigError, match=r"states\.function"):
        keys_of(name, "a")


def test_a_function_stands_alone():
    with pytest.raises(ConfigError, match="function decides the key alone"):
        CreditConfig.load({"states": {"function": "a.py:f", "masks": ["numbers"]}})


def test_a_config_with_a_function_can_be_written_as_json():
    config = StateConfig(function=json.dumps, history=2)
    assert json.loads(config.model_dump_json())["function"] == "json:dumps"
    assert json.loads(StateConfig().model_dump_json())["function"] is None
