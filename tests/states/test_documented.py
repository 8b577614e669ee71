"""The examples of docs/credit.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from milegpo_plugin.config import CreditConfig, StateConfig
from milegpo_plugin.states import state_keys
from milegpo_plugin.types import Step, Trajectory

PAGE = (Path(__file__).parents[2] / "docs" / "credit.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\|[^|]*\| `(\{.*?\})` \| (.*) \|$", PAGE, re.MULTILINE)
PAIRS = [
    (options, first, second)
    for options, text in ROWS
    for first, second in re.findall(r"^`(.*?)` / `(.*?)`$", text)
]


def keys(options, *texts):
    steps = [Step(observation=[{"role": "tool", "content": text}]) for text in texts]
    trajectory = Trajectory(task_id="t", rollout_id="r", steps=steps)
    return state_keys([trajectory], StateConfig.model_validate(options)).steps[0]


@pytest.mark.parametrize("options", [options for options, _ in ROWS])
def test_every_example_is_a_valid_setting(options):
    CreditConfig.load({"states": yaml.safe_load(options)})


def test_every_option_of_the_state_has_an_example():
    shown = {name for options, _ in ROWS for name in yaml.safe_load(options)}
    assert shown == set(StateConfig.model_fields)


@pytest.mark.parametrize(("options", "first", "second"), PAIRS)
def test_observations_that_become_one_state_do(options, first, second):
    assert len(set(keys(yaml.safe_load(options), first, second))) == 1
    assert len(set(keys({}, first, second))) == 2


def test_there_are_examples_of_pairs():
    assert len(PAIRS) >= 4


def test_every_estimator_is_described():
    described = re.findall(r"^\| `(\w+)`(?: \(default\))? \|", PAGE, re.MULTILINE)
    assert set(CreditConfig.model_fields["estimator"].annotation.__args__) <= set(described)
