"""Executions of tools: one span or several for each, asked for by a recorded call or by none."""

from __future__ import annotations

import pytest

from milegpo_plugin.trajectories import build_trajectories

LOOK = [("c1", "look", {})]
TASK = ("user", "Open the door.")


@pytest.fixture
def make_run(make_span):
    """The execution of a tool in the GenAI form."""

    def make(name, result=None, call_id=None, **fields):
        values = {"operation.name": "execute_tool", "tool.name": name, "tool.call.result": result}
        values["tool.call.id"] = call_id
        given = {f"gen_ai.{key}": value for key, value in values.items() if value is not None}
        return make_span(f"execute_tool {name}", given, **fields)

    return make


@pytest.fixture
def agent(make_span):
    given = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "player"}
    return make_span("invoke_agent player", given, at=0, until=100)


def client_span(make_span, name, parent, at):
    given = {"mcp.method.name": "tools/call", "gen_ai.tool.name": name}
    return make_span(f"MCP send tools/call {name}", given, at=at, until=at + 1, parent=parent, kind="CLIENT")


def test_the_span_of_a_client_below_a_tool_is_the_same_run(agent, make_call, make_run, make_span):
    twice = [("c1", "look", {}), ("c2", "look", {})]
    call = make_call([TASK], None, twice, at=1, parent=agent)
    runs = [make_run("look", f"room {n}", at=n * 4, until=n * 4 + 3, parent=agent) for n in (1, 2)]
    copies = [client_span(make_span, "look", run, n * 4 + 1) for n, run in enumerate(runs, start=1)]
    result = build_trajectories([agent, call, *runs, *copies])
    assert result.counts["tool_runs"] == 2
    (trajectory,) = result.trajectories
    assert trajectory.final_observation == "room 1\nroom 2"


def test_a_copy_below_gives_what_the_outer_span_does_not_tell(agent, make_call, make_run):
    call = make_call([TASK], None, LOOK, at=1, parent=agent)
    outer = make_run("look", at=4, until=7, parent=agent)
    inner = make_run("look", "a hall", "c1", at=5, until=6, parent=outer)
    (trajectory,) = build_trajectories([agent, call, outer, inner]).trajectories
    assert trajectory.final_observation == "a hall"


def test_the_same_tool_of_an_agent_below_is_another_run(agent, make_call, make_run, make_span):
    call = make_call([TASK], None, LOOK, at=1, parent=agent)
    outer = make_run("look", "outer", at=4, until=30, parent=agent)
    given = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "scout"}
    scout = make_span("invoke_agent scout", given, at=5, until=29, parent=outer)
    asked = make_call([("user", "Look.")], None, [("c2", "look", {})], at=6, parent=scout)
    inner = make_run("look", "inner", at=10, until=11, parent=scout)
    result = build_trajectories([agent, call, outer, scout, asked, inner])
    assert result.counts["tool_runs"] == 2
    assert result.flags["unasked_tool_run"] == 0


def test_a_run_that_nobody_asked_for_is_flagged_on_the_call_before_it(agent, make_call, make_run):
    first = make_call([TASK], None, LOOK, at=1, parent=agent)
    runs = [
        make_run("look", "a hall", "c1", at=4, parent=agent),
        make_run("take", "a key", "c2", at=9, parent=agent),
    ]
    (trajectory,) = build_trajectories([agent, first, *runs]).trajectories
    assert trajectory.steps[0].flags == ["unasked_tool_run"]


def test_a_tool_that_was_tried_again_or_is_part_of_another_is_not_flagged(agent, make_call, make_run):
    call = make_call([TASK], None, LOOK, at=1, parent=agent)
    first = make_run("look", "no answer", at=4, until=5, parent=agent)
    again = make_run("look", "a hall", at=6, until=9, parent=agent)
    part = make_run("read_map", "a map", at=7, until=8, parent=again)
    result = build_trajectories([agent, call, first, again, part])
    assert result.flags["unasked_tool_run"] == 0


def test_tools_that_code_runs_are_not_flagged(agent, make_call, make_run):
    call = make_call([TASK], "print(look())", at=1, parent=agent)
    run = make_run("look", "a hall", at=4, parent=agent)
    assert build_trajectories([agent, call, run]).flags["unasked_tool_run"] == 0
