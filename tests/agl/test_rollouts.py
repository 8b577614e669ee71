"""The real store, Trainer, runner and AgentOps tracer with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import agentlightning
import pytest

from milegpo_plugin.agl.agent import UserAgent
from milegpo_plugin.agl.algorithm import StoreAlgorithm, read_tasks
from milegpo_plugin.agl.rollouts import Collected
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.trajectories import ReconstructOptions

AGENT = """
import json, os, sys
from openai import OpenAI

def walk(task):
    if task.get("raises"):
        raise RuntimeError("the game is broken")
    if task.get("silent"):
        return 0.0
    client = OpenAI()
    tool = {"type": "function", "function": {"name": "move", "parameters": {
        "type": "object", "properties": {"to": {"type": "string", "enum": [task["to"]]}}}}}
    messages = [{"role": "user", "content": "Walk."}]
    for turn in range(2):
        message = client.chat.completions.create(
            model=os.environ["OPENAI_MODEL"], messages=messages, tools=[tool]).choices[0].message
        call = message.tool_calls[0]
        messages += [message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": f"You are in room {turn}."}]
    return {"room": task["to"]}

if __name__ == "__main__":
    print(json.dumps(walk(json.loads(sys.argv[1]))))
"""
REWARD = """
import json

def score(task, result):
    if isinstance(result, str):
        result = json.loads(result)
    if isinstance(result, float):
        return result
    return 1.0 if result["room"] == "east" else None
"""


class Once(StoreAlgorithm):
    """Collect every task twice and keep what came back."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.collected: Collected | None = None
        self.progress: list[int] = []

    async def run(self, train_dataset=None, val_dataset=None) -> None:
        client = self.rollout_client(ReconstructOptions(), timeout=60, alive=lambda: None)
        resources = await self.publish_endpoint(self.base_url, model="policy", api_key=None)
        self.collected = await client.collect(
            read_tasks(train_dataset, "train"),
            repeats=2,
            mode="train",
            resources_id=resources,
            on_progress=self.progress.append,
        )


@pytest.fixture
def collect(tmp_path: Path, scripted_model: str) -> Callable[..., Once]:
    agent, reward = tmp_path / "walker.py", tmp_path / "reward.py"
    agent.write_text(AGENT, encoding="utf-8")
    reward.write_text(REWARD, encoding="utf-8")

    def run(tasks: list[dict], *, function: str = ":walk") -> Once:
        algorithm = Once(scripted_model)
        trainer = agentlightning.Trainer(
            algorithm=algorithm,
            strategy={"type": "shm", "n_runners": 1, "main_thread": "algorithm"},
            runner={"type": "agentlightning.LitAgentRunner", "poll_interval": 0.05, "interval_jitter": 0.01},
        )
        trainer.fit(UserAgent(f"{agent}{function}", f"{reward}:score"), train_dataset=tasks)
        return algorithm

    return run


@pytest.mark.parametrize("function", [":walk", ""], ids=["function", "script"])
def test_an_unmodified_agent_becomes_trajectories_with_token_ids_and_outcome(collect, function):
    algorithm = collect([{"task_id": "t", "to": "east"}], function=function)
    first, second = algorithm.collected.trajectories
    assert first.task_id == second.task_id == "t"
    assert first.rollout_id != second.rollout_id
    assert [t.reward for t in (first, second)] == [1.0, 1.0]
    for trajectory in (first, second):
        assert [s.action.tool_calls[0].arguments for s in trajectory.steps] == [
            {"to": "east"},
            {"to": "east"},
        ]
        assert trajectory.steps[0].observation == [{"role": "user", "content": "Walk."}]
        assert trajectory.steps[1].observation[-1]["content"] == "You are in room 0."
        assert all(s.prompt_token_ids and len(s.response_token_ids) == 2 for s in trajectory.steps)
    assert algorithm.progress[-1] == 2


def test_an_agent_that_raises_or_never_calls_costs_only_its_own_rollouts(collect):
    tasks = [{"id": "bad", "raises": True}, {"id": "mute", "silent": True}, {"id": "good", "to": "east"}]
    collected = collect(tasks).collected
    by_task = {t.task_id: t for t in collected.trajectories}
    assert len(collected.trajectories) == 6
    assert "failed" in by_task["bad"].flags
    assert "no_model_call" in by_task["mute"].flags
    assert by_task["good"].reward == 1.0
    reasons = {item.reason for item in collected.skipped}
    assert "the agent raised RuntimeError: the game is broken" in reasons
    assert "no model call was traced" in reasons


def test_an_unknown_reward_stays_unknown(collect):
    assert {t.reward for t in collect([{"to": "west"}]).collected.trajectories} == {None}


def test_waiting_ends_when_the_policy_is_gone(scripted_model):
    def dead() -> None:
        raise ConfigError("the policy server died")

    async def wait() -> None:
        algorithm = Once(scripted_model)
        algorithm.set_store(agentlightning.InMemoryLightningStore())
        client = algorithm.rollout_client(ReconstructOptions(), timeout=60, alive=dead)
        await client.collect(
            read_tasks([{"to": "east"}], "train"), repeats=1, mode="train", resources_id="r", on_progress=len
        )

    with pytest.raises(ConfigError, match="server died"):
        asyncio.run(wait())


def test_tasks_need_distinct_ids_and_must_be_objects():
    assert [t.task_id for t in read_tasks([{}, {"id": 3}, {"task_id": "x"}], "train")] == [
        "train-0",
        "3",
        "x",
    ]
    with pytest.raises(ConfigError, match="used twice"):
        read_tasks([{"id": "a"}, {"id": "a"}], "train")
    with pytest.raises(ConfigError, match="got str"):
        read_tasks(["text"], "train")


def test_json_round_trip_of_collected_trajectories(collect):
    trajectory = collect([{"to": "east"}]).collected.trajectories[0]
    assert type(trajectory).model_validate(json.loads(trajectory.model_dump_json())) == trajectory
