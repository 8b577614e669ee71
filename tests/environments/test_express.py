"""TextWorld-Express through the tool server: both ways to act, on every game."""

from __future__ import annotations

import itertools

import pytest

SOLUTIONS = {
    "coin": ["take coin"],
    "mapreader": [
        "read map",
        "move north",
        "move west",
        "take coin",
        "move south",
        "move east",
        "put coin in box",
    ],
    "cookingworld": [
        "take cookbook",
        "read cookbook",
        "open fridge",
        "take chicken wing",
        "move west",
        "take flour",
        "move east",
        "cook chicken wing in toaster",
        "prepare meal",
        "eat meal",
    ],
}


@pytest.fixture(params=SOLUTIONS)
def environment(request):
    return request.param


def test_the_game_can_be_won_with_commands(player, environment):
    frame = player.start(environment, seed=3)
    for command in SOLUTIONS[environment]:
        assert command in frame["actions"]
        assert not frame["done"]
        frame = player.act(frame, command)
    assert (frame["won"], frame["done"], frame["score"]) == (True, True, 1.0)


def test_the_game_can_be_won_with_tool_calls(player, environment):
    frame = player.start(environment, seed=3)
    for command in SOLUTIONS[environment]:
        name, arguments = call_for(command, frame["tools"])
        frame = player.call(frame, name, **arguments)
    assert (frame["won"], frame["done"], frame["score"]) == (True, True, 1.0)


def call_for(command: str, tools: list[dict]) -> tuple[str, dict[str, str]]:
    """The offered tool call that spells the command."""
    for tool in tools:
        function = tool["function"]
        properties = function["parameters"]["properties"]
        for values in itertools.product(*(rule["enum"] for rule in properties.values())):
            words = [function["name"].replace("_", " "), *" in ".join(values).split(" ")]
            if " ".join(word for word in words if word) == command:
                return function["name"], dict(zip(properties, values, strict=True))
    raise AssertionError(f"no tool offers {command!r}")


def test_every_command_is_offered_by_a_tool(environment_module, environment):
    games, express = environment_module("games"), environment_module("express")
    game = express.ExpressGame(environment)
    frame = game.start({"seed": 3})
    for command in SOLUTIONS[environment]:
        offered = {
            tool.write(dict(zip(tool.parameters, values, strict=True)))
            for tool in game.tools
            if (choices := tool.choices(frame.actions)) is not None
            for values in itertools.product(*choices.values())
        }
        assert set(frame.actions) <= offered
        assert len(games.tool_schemas(game.tools, frame.actions)) > 1
        frame = game.act(command)
    game.close()


def test_a_wrong_command_costs_a_step_and_changes_nothing(player):
    frame = player.start("coin", seed=3)
    after = player.act(frame, "fly to the moon")
    assert after["actions"] == frame["actions"]
    assert (after["score"], after["done"]) == (0.0, False)


def test_the_same_seed_gives_the_same_house_on_a_used_engine(player):
    first = player.start("coin", seed=3)
    player.act(first, "take coin")
    again = player.start("coin", seed=3)
    assert again["observation"] == first["observation"]


def test_two_games_at_once_do_not_meet(player):
    one, other = player.start("coin", seed=3), player.start("coin", seed=4)
    moved = player.act(one, "move south")
    assert moved["observation"] != one["observation"]
    assert player.act(other, "look around")["observation"] == other["observation"]


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("/games", {"environment": "chess"}, 400, "no environment 'chess'"),
        ("/games", {"environment": "coin", "task": {"seed": "x"}}, 400, "needs an integer seed, got 'x'"),
        ("/games/nothing/act", {"action": "look"}, 404, "no open game 'nothing'"),
    ],
)
def test_what_cannot_be_played_is_said_in_one_line(player, path, body, status, reason):
    assert reason in player.post(path, body, status)["error"]


def test_a_finished_game_is_over(player):
    frame = player.act(player.start("coin", seed=3), "take coin")
    player.post(f"/games/{frame['game']}/act", {"action": "look around"}, 404)


def test_a_tool_call_without_its_argument_is_refused(player):
    frame = player.start("coin", seed=3)
    body = {"name": "move", "arguments": {}}
    assert "needs direction" in player.post(f"/games/{frame['game']}/call", body, 400)["error"]
