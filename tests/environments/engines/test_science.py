"""ScienceWorld's easy subset through the tool server."""

from __future__ import annotations

import pytest

SOLUTION = [
    "open door to kitchen",
    "go to kitchen",
    "focus on drawer in counter",
    "move drawer in counter to red box",
]


def test_a_task_is_done_with_commands(player):
    frame = player.start("scienceworld", task="find-non-living-thing", variation=0)
    scores = []
    for command in SOLUTION:
        assert not frame["done"]
        frame = player.act(frame, command)
        scores.append(frame["score"])
    assert scores == sorted(scores)
    assert (frame["won"], frame["done"], frame["score"]) == (True, True, 1.0)


def test_a_task_is_done_with_tool_calls(environment_module, player):
    tools = environment_module("science").TOOLS
    frame = player.start("scienceworld", task="find-non-living-thing", variation=0)
    for command in SOLUTION:
        tool, choices = next((t, c) for t in tools if (c := t.choices([command])) is not None)
        frame = player.call(frame, tool.name, **{name: value for name, (value,) in choices.items()})
    assert frame["won"]


@pytest.mark.parametrize("index", range(4))
def test_every_possible_action_is_offered_by_a_tool(environment_module, player, index):
    science = environment_module("science")
    frame = player.start("scienceworld", task=science.EASY_TASKS[index], variation=0)
    assert len(frame["actions"]) > 20
    for action in frame["actions"]:
        assert any(tool.choices([action]) is not None for tool in science.TOOLS), action


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"task": "find-unicorn", "variation": 0}, "no task 'find-unicorn'; the easy ones are find-animal"),
        ({"task": "find-plant", "variation": -1}, "has the variations 0 to"),
    ],
)
def test_a_task_that_does_not_exist_is_refused(player, task, reason):
    body = {"environment": "scienceworld", "task": task}
    assert reason in player.post("/games", body, 400)["error"]
