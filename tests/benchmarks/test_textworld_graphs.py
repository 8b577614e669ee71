"""The committed game graphs: sound, and what the real game does."""

import json
import random

import numpy as np
import pytest

from benchmarks.ground_truth.exact import optimal_action_values
from benchmarks.ground_truth.mdps import stack
from benchmarks.ground_truth.textworld import DATA, GAMES, INSTANCES, Explorer, load, open_game

NAMES = [game.name for game in GAMES]


@pytest.mark.parametrize("name", NAMES)
def test_every_graph_leads_from_the_start_to_the_goal(name):
    mdps = load(name)
    assert len(mdps) == INSTANCES
    assert (optimal_action_values(stack(mdps, 20))[:, 0].max(axis=1) > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_state_without_moves_is_an_end(name):
    for mdp in load(name):
        assert mdp.terminal_S[-1]
        assert not mdp.terminal_S[0]
        assert mdp.legal_SA[~mdp.terminal_S].any(axis=1).all()


@pytest.mark.parametrize("game", GAMES, ids=NAMES)
def test_random_walks_through_the_real_game_follow_the_graph(game):
    """Two states of the graph are one exactly when the game shows the same text."""
    stored = json.loads((DATA / f"{game.name}.json").read_text(encoding="utf-8"))
    rng = random.Random(0)
    environment = open_game(game)
    explorer = Explorer(environment, game)
    try:
        for instance in rng.sample(stored["instances"], 5):
            walk(explorer, instance, rng)
    finally:
        environment.close()


def walk(explorer, instance, rng, length=12):
    state, seen = 0, {}
    info = explorer.replay(instance["seed"], [])
    for _ in range(length):
        if not instance["moves"][state]:
            assert info["taskfailure"] or info["tasksuccess"]
            assert info["tasksuccess"] == (state == len(instance["moves"]) - 1)
            return
        text = (info["look"].strip(), info["inventory"].strip())
        assert seen.setdefault(text, state) == state
        legal = {instance["actions"][action] for action, _ in instance["moves"][state]}
        assert legal <= set(info["validActions"])
        action, state = rng.choice(instance["moves"][state])
        info = explorer.step(instance["actions"][action])
    assert np.unique(list(seen.values())).size == len(seen)
