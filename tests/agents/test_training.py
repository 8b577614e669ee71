"""Agents as people write them are trained for two iterations: nothing of what they did is lost."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

FOUND = "def score(task, result):\n    return float(result['found'])\n"
WON = "def score(task, result):\n    return float(result['won'])\n"
DELIVERED = "def score(task, result):\n    return float(result['delivered'])\n"
HOUSES = [{"task_id": f"house-{seed}", "seed": seed} for seed in (3, 5)]


@pytest.mark.parametrize(
    ("agent", "reward"),
    [
        ("coin_player.py", FOUND),
        ("langgraph_porter.py", DELIVERED),
        ("openai_agents_walker.py", FOUND),
        ("pydantic_ai_walker.py", FOUND),
        ("smolagents_walker.py", FOUND),
    ],
)
def test_an_agent_is_trained_as_it_is(training, agent, reward):
    training.run(agent, reward, HOUSES, {})
    check(training)


@pytest.mark.parametrize("agent", ["react_player.py", "tool_player.py"])
def test_an_agent_that_plays_through_the_tool_server_is_trained_as_it_is(training, games_url, agent):
    tasks = [{**task, "environment": "coin", "max_steps": 6, "max_turns": 6} for task in HOUSES]
    training.run(agent, WON if agent == "tool_player.py" else None, tasks, {"GAMES_URL": games_url})
    check(training)


def check(training) -> None:
    """Every rollout has its reward, every step its text, token ids and log-probabilities, and all are trained."""
    for iteration in (1, 2):
        rollouts = training.trajectories(iteration)
        steps = [step for rollout in rollouts for step in rollout["steps"]]
        metrics = training.metrics()[iteration]
        assert len(rollouts) == metrics["scored"] == 4
        assert all(rollout["reward"] is not None for rollout in rollouts)
        assert len(steps) > len(rollouts)
        assert all(step["prompt_token_ids"] and step["response_token_ids"] for step in steps)
        assert all(len(step["logprobs"]) == len(step["response_token_ids"]) for step in steps)
        skipped = sum(count for name, count in metrics.items() if name.startswith("learner/skipped_"))
        assert metrics["learner/rows"] + skipped == len(steps)
        assert metrics["skipped"] == {}
        assert metrics["learner/ratio_max_dev"] < 1e-3
