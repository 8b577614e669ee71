"""Gateway, local controller and agents of Agent Lightning 1.0 → events → credit."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from milegpo_plugin import CreditConfig, assign_credit
from milegpo_plugin.agl.v1.agent import AGENT_CLASS
from milegpo_plugin.agl.v1.rollouts import Rebuilt, rebuild_rollouts
from milegpo_plugin.cli import app
from milegpo_plugin.trajectories import ReconstructOptions
from milegpo_plugin.types import Step, Trajectory

ROOMS = ("hall", "kitchen", "cellar", "attic")
Play = Callable[..., list[Any]]


def rebuild(completed: Sequence[Any]) -> Rebuilt:
    return rebuild_rollouts(completed, ReconstructOptions())


def walk_of(rollout: Any) -> list[str]:
    """The directions that the model answered, from the gateway's raw events."""
    replies = [e["data"]["response"] for e in rollout.events if e["event_type"] == "model_request"]
    calls = [reply["choices"][0]["message"]["tool_calls"][0] for reply in replies]
    return [json.loads(call["function"]["arguments"])["direction"] for call in calls]


def walked(rollout: Any) -> Trajectory:
    """The rollout as the corridor's rules tell it; its first text also names the corridor."""
    place, steps = 0, []
    for direction in walk_of(rollout):
        steps.append(Step(state=ROOMS[place] if steps else "start"))
        place = max(0, min(len(ROOMS) - 1, place + (1 if direction == "east" else -1)))
    return Trajectory(
        task_id=rollout.data_id,
        rollout_id=rollout.rollout_id,
        reward=float(place == len(ROOMS) - 1),
        steps=steps,
    )


def wander(seed: int) -> Callable[[Any], str]:
    dice = random.Random(seed)
    return lambda messages: dice.choice(["east", "east", "west"])


def test_the_credit_of_an_unmodified_agent_is_that_of_its_walk(play: Play, model: Any) -> None:
    model.policy = wander(seed=2)
    completed = play([{"corridor": 1, "max_turns": 6}, {"corridor": 2, "max_turns": 4}], rollouts=4)
    rebuilt = rebuild(completed)
    assert rebuilt.skipped == []
    expected = [walked(rollout) for rollout in completed]
    assert [t.reward for t in rebuilt.trajectories] == [t.reward for t in expected]
    credit, truth = assign_credit(rebuilt.trajectories), assign_credit(expected)
    for index in range(len(completed)):
        np.testing.assert_allclose(credit.advantages(index), truth.advantages(index), atol=1e-12)
    assert len({t.task_id for t in rebuilt.trajectories}) == 2
    assert np.ptp(np.concatenate([credit.advantages(i) for i in range(len(completed))])) > 0


def test_token_ids_are_what_the_model_server_counted(play: Play, model: Any) -> None:
    completed = play([{"corridor": 3}])
    (trajectory,) = rebuild(completed).trajectories
    turns = completed[0].triplets
    assert [step.prompt_token_ids for step in trajectory.steps] == [t.prompt["token_ids"] for t in turns]
    assert [step.response_token_ids for step in trajectory.steps] == [t.response["token_ids"] for t in turns]
    assert [step.logprobs for step in trajectory.steps] == [t.response["log_probs"] for t in turns]


@pytest.mark.parametrize(
    ("task", "refused", "reason"),
    [
        ({"corridor": 1, "crash_at": 2}, 0, "the agent raised RuntimeError: the corridor fell in"),
        ({"corridor": 1}, 1, "the agent raised BadRequestError: Error code: 400"),
    ],
    ids=["agent raises", "model server refuses"],
)
def test_a_rollout_that_broke_is_dropped_with_its_reason(
    play: Play, model: Any, task: dict[str, Any], refused: int, reason: str
) -> None:
    model.failures = refused
    broken = rebuild(play([task]))
    assert "failed" in broken.trajectories[0].flags
    assert broken.trajectories[0].reward is None
    assert any(reason in item.reason for item in broken.skipped)
    fine = Trajectory(
        task_id=broken.trajectories[0].task_id, rollout_id="fine", reward=1.0, steps=[Step(state="hall")]
    )
    assert assign_credit([*broken.trajectories, fine], CreditConfig()).advantages(0) is None


def test_states_and_observations_that_an_agent_posts_are_used(play: Play, model: Any) -> None:
    agent = f"{Path(__file__).parent / 'data' / 'declaring_agent.py'}:play"
    (trajectory,) = rebuild(play([{"corridor": 1}], agent=agent, reward=None)).trajectories
    assert [step.state for step in trajectory.steps] == ["hall", "kitchen", "cellar"]
    assert trajectory.final_observation == "You are in the attic. The key is here."
    assert trajectory.reward == 1.0


def test_events_saved_from_the_server_go_through_the_command_line(
    gateway: str, model: Any, policy_name: str, agent_files: tuple[str, str], key: str, tmp_path: Path
) -> None:
    model.policy = wander(seed=5)
    events = play_over_http(gateway, key, model, policy_name, agent_files, rollouts=4)
    file = tmp_path / "events.json"
    file.write_text(json.dumps(events), encoding="utf-8")
    out = tmp_path / "credit.jsonl"
    result = CliRunner().invoke(app, ["credit", str(file), "-o", str(out)])
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == sum(event["event_type"] == "model_request" for event in events)
    assert all(isinstance(line["advantage"], float) for line in lines)


def play_over_http(
    url: str, key: str, model: Any, policy_name: str, agent_files: tuple[str, str], rollouts: int
) -> list[dict[str, Any]]:
    """Queue rollouts and read their events with nothing but the server's own API."""
    agent, reward = agent_files
    variables = {"MILEGPO_AGENT": agent, "MILEGPO_REWARD": reward, "MILEGPO_TASK": "input"}
    local = {"agent_class": AGENT_CLASS, "env_map": variables}
    wanted = {"input": {"corridor": 7}, "config": {"timeout_seconds": 600, "local": local}}
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=30) as client:
        client.delete("/api/models")
        client.post("/api/models", json=[{"model": policy_name, "endpoint": model.base_url}])
        ids = [item["rollout_id"] for item in client.post("/api/rollouts", json=[wanted] * rollouts).json()]
        while {_state(client, rollout_id) for rollout_id in ids} - {"succeeded", "failed"}:
            time.sleep(0.3)
        return [
            event for rollout_id in ids for event in client.get(f"/api/rollouts/{rollout_id}/events").json()
        ]


def _state(client: httpx.Client, rollout_id: str) -> str:
    return str(client.get(f"/api/rollouts/{rollout_id}").json()["rollout"]["status"]["state"])
