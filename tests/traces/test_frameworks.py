"""Frameworks that have no capture of the scripted game: agents whose actions are code, and crews."""

from __future__ import annotations

import json

import pytest

from milegpo_plugin.trajectories import build_trajectories


def test_the_actions_of_a_code_agent_are_its_code(load_capture, truth):
    (trajectory,) = build_trajectories(load_capture("openinference_smolagents__code")).trajectories
    assert len(trajectory.steps) == len(truth["steps"])
    assert {step.agent for step in trajectory.steps} == {"player"}
    for step, told in zip(trajectory.steps, truth["steps"], strict=True):
        assert step.action.tool_calls == []
        assert all(f"{call['name']}(" in step.action.text for call in told["tool_calls"])
    for after, told in zip(trajectory.steps[1:], truth["steps"], strict=False):
        seen = str(after.observation)
        assert all((call["result"] or "does not fit the lock") in seen for call in told["tool_calls"])


@pytest.fixture
def crew(make_span):
    """A crew of one player, as OpenInference traces it, with the client's spans."""
    scope = {"scope": "openinference.instrumentation.crewai"}
    client = {"scope": "openinference.instrumentation.openai"}
    crew = make_span("Crew_1.kickoff", {"openinference.span.kind": "CHAIN"}, at=0, until=100, **scope)
    agent = make_span(
        "player._execute_core",
        {"openinference.span.kind": "AGENT", "agent.name": "player"},
        at=1,
        until=99,
        parent=crew,
        **scope,
    )
    asked = {"id": "c1", "function.name": "look", "function.arguments": "{}"}
    history = [{"role": "user", "content": "Open the door."}]
    first = make_span(
        "ChatCompletion",
        message_keys("input", history) | message_keys("output", [{"role": "assistant"}], asked) | LLM,
        at=2,
        until=4,
        parent=agent,
        **client,
    )
    tool = make_span(
        "look.run",
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "look",
            "input.value": json.dumps({}),
            "output.value": "A hall.",
        },
        at=5,
        until=6,
        parent=agent,
        **scope,
    )
    return [crew, agent, first, tool]


LLM = {"openinference.span.kind": "LLM"}


def message_keys(side, messages, call=None):
    keys = {}
    for number, message in enumerate(messages):
        base = f"llm.{side}_messages.{number}.message."
        keys |= {base + key: value for key, value in message.items()}
        for key, value in (call or {}).items():
            keys[f"{base}tool_calls.0.tool_call.{key}"] = value
    return keys


def test_the_agents_and_tools_of_a_crew_frame_the_calls_of_its_client(crew):
    result = build_trajectories(crew)
    (trajectory,) = result.trajectories
    (step,) = trajectory.steps
    assert (step.agent, step.action.tool_calls[0].name) == ("player", "look")
    assert trajectory.final_observation == "A hall."
    assert result.counts["tool_runs"] == 1


def test_two_runs_of_a_crew_are_two_rollouts(crew, make_span):
    again = make_span("Crew_1.kickoff", {"openinference.span.kind": "CHAIN"}, at=200, until=300)
    history = [{"role": "user", "content": "Open the door."}]
    keys = message_keys("input", history) | message_keys("output", [{"role": "assistant", "content": "No."}])
    call = make_span("ChatCompletion", keys | LLM, at=210, until=220, parent=again)
    assert len(build_trajectories([*crew, again, call]).trajectories) == 2
