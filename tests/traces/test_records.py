"""Records that are made without a check are those that a check would have made."""

from __future__ import annotations

import copy
import pickle

import pytest

from milegpo_plugin.trajectories import build_trajectories
from milegpo_plugin.types import Action, Step, ToolCall, Trajectory, trusted

FIELDS = {
    "state": None,
    "observation": [{"role": "user", "content": "go"}],
    "agent": None,
    "action": Action(text="look", tool_calls=[ToolCall(id=None, name="look", arguments={"at": "door"})]),
    "reward": 0.5,
    "prompt_token_ids": [1, 2],
    "response_token_ids": [3],
    "logprobs": [-0.5],
    "span_id": "a1",
    "flags": [],
}


def test_a_trusted_step_is_a_checked_one():
    quick, checked = trusted(Step, dict(FIELDS)), Step(**FIELDS)
    assert quick == checked
    assert quick.model_dump_json() == checked.model_dump_json()
    assert quick.model_fields_set == checked.model_fields_set
    assert copy.deepcopy(quick) == checked
    assert pickle.loads(pickle.dumps(quick)) == checked
    quick.model_extra["milestones"] = ["door"]
    assert Step.model_validate_json(quick.model_dump_json()).model_extra == {"milestones": ["door"]}


def test_what_is_added_to_one_trusted_step_shows_on_no_other():
    changed, other = trusted(Step, dict(FIELDS)), trusted(Step, dict(FIELDS))
    changed.note = "new"
    assert other.model_fields_set == set(FIELDS)
    assert other.model_extra == {}


@pytest.mark.parametrize("model", [Step, Action, ToolCall])
def test_a_rebuilt_record_has_every_field_in_order(load_capture, model):
    steps = build_trajectories(load_capture("agentlightning03_agentops")).trajectories[0].steps
    actions = [step.action for step in steps]
    records = {Step: steps, Action: actions, ToolCall: [call for a in actions for call in a.tool_calls]}[
        model
    ]
    assert records
    for record in records:
        assert [*vars(record)] == [*model.model_fields]


def test_a_rebuilt_rollout_is_valid(load_capture):
    for rollout in build_trajectories(load_capture("agentlightning03_agentops")).trajectories:
        assert Trajectory.model_validate(rollout.model_dump(), strict=True) == rollout


def test_a_step_shares_nothing_with_the_spans(load_capture):
    spans = load_capture("agentlightning03_agentops")
    for rollout in build_trajectories(spans).trajectories:
        for step in rollout.steps:
            step.prompt_token_ids.append(0)
            step.observation[0]["content"] = "changed"
    again = build_trajectories(spans).trajectories
    assert not any(step.prompt_token_ids[-1] == 0 for rollout in again for step in rollout.steps)
    assert not any(step.observation[0]["content"] == "changed" for rollout in again for step in rollout.steps)
