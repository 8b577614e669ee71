"""ALFWorld's engine on own instances: written, solved and played through the tool server."""

from __future__ import annotations

import json

import pytest

TASK_TYPES = [
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
]


@pytest.fixture(scope="module")
def game_file(environment_module, tmp_path_factory):
    folder = tmp_path_factory.mktemp("games")
    (file,) = environment_module("household_instances").write_split(
        folder, "pick_and_place_simple", 1, unseen=False
    )
    return file


def test_a_game_is_won_with_its_walkthrough(player, game_file):
    frame = player.start("alfworld", game=str(game_file))
    for command in json.loads(game_file.read_text(encoding="utf-8"))["walkthrough"]:
        assert command in frame["actions"]
        assert (frame["won"], frame["score"]) == (False, 0.0)
        frame = player.act(frame, command)
    assert (frame["won"], frame["done"], frame["score"]) == (True, True, 1.0)


def test_a_game_is_won_with_tool_calls(environment_module, player, game_file):
    tools = environment_module("household").TOOLS
    frame = player.start("alfworld", game=str(game_file))
    for command in json.loads(game_file.read_text(encoding="utf-8"))["walkthrough"]:
        tool, choices = next((t, c) for t in tools if (c := t.choices([command])) is not None)
        offered = {offer["function"]["name"]: offer["function"]["parameters"] for offer in frame["tools"]}
        arguments = {name: value for name, (value,) in choices.items()}
        assert all(arguments[name] in rule["enum"] for name, rule in offered[tool.name]["properties"].items())
        frame = player.call(frame, tool.name, **arguments)
    assert frame["won"]


def test_the_label_says_whose_instances_these_are(game_file):
    trajectory = json.loads((game_file.parent / "traj_data.json").read_text(encoding="utf-8"))
    assert trajectory["origin"] == "ALFWorld format, own instances"


def test_the_goal_is_not_part_of_the_observation(player, game_file):
    frame = player.start("alfworld", game=str(game_file))
    assert frame["goal"].startswith("put ")
    assert "Your task is to" not in frame["observation"]


def test_a_task_without_a_game_file_is_refused(player):
    body = {"environment": "alfworld", "task": {"game": "absent.tw-pddl"}}
    assert "path of a game.tw-pddl, got 'absent.tw-pddl'" in player.post("/games", body, 400)["error"]


@pytest.mark.parametrize("task_type", [*TASK_TYPES, "pick_two_obj_and_place"])
def test_instances_are_the_same_for_the_same_seed_and_differ_between_seeds(environment_module, task_type):
    instances = environment_module("household_instances")
    scene = environment_module("floor_plans").scenes_for(task_type)[0]
    drawn = [instances.draw_instance(task_type, scene, seed) for seed in range(12)]
    again = [instances.draw_instance(task_type, scene, seed) for seed in range(12)]
    found = [instance for instance in drawn if instance is not None]
    assert drawn == again
    assert len({instances.write_problem(instance) for instance in found}) == len(found) > 0


@pytest.mark.parametrize("task_type", [*TASK_TYPES, "pick_two_obj_and_place"])
def test_the_goal_does_not_hold_at_the_start(environment_module, task_type):
    instances = environment_module("household_instances")
    scene = environment_module("floor_plans").scenes_for(task_type)[0]
    for seed in range(12):
        instance = instances.draw_instance(task_type, scene, seed)
        if instance is not None:
            targets = [placed for placed in instance.objects if placed.kind == instance.target]
            assert len(targets) == (2 if "two" in task_type else 1)
            assert all(placed.where.kind != instance.parent for placed in targets)


def test_no_unseen_room_is_seen_in_training(environment_module, tmp_path, monkeypatch):
    instances = environment_module("household_instances")
    monkeypatch.setattr(instances, "solve", lambda file: ["look"])
    files = {
        unseen: instances.write_split(tmp_path, "pick_and_place_simple", 12, unseen=unseen)
        for unseen in (False, True)
    }
    rooms = {
        unseen: {file.parent.parent.name.rsplit("-", 1)[1] for file in written}
        for unseen, written in files.items()
    }
    assert len(files[False]) == len(files[True]) == 12
    assert not rooms[False] & rooms[True]


def test_a_game_that_the_planner_cannot_solve_is_not_kept(environment_module, tmp_path, monkeypatch):
    instances = environment_module("household_instances")
    monkeypatch.setattr(instances, "solve", lambda file: [])
    assert instances.write_split(tmp_path, "pick_and_place_simple", 1, unseen=False) == []
    assert list(tmp_path.rglob("*.tw-pddl")) == []
