from __future__ import annotations

import asyncio
import contextvars
import os
import threading

import pytest

from milegpo_plugin.agl.play import environment, load_agent, run_script
from milegpo_plugin.errors import AgentError, InputNotFoundError
from milegpo_plugin.loading import load_function


def fail_inside(values: dict[str, str]) -> None:
    with environment(values):
        raise KeyError(os.environ["OPENAI_API_KEY"])


def test_the_environment_is_put_back_even_when_the_agent_raises(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "mine")
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    with pytest.raises(KeyError, match="theirs"):
        fail_inside({"OPENAI_API_KEY": "theirs", "OPENAI_MODEL": "policy"})
    assert os.environ["OPENAI_API_KEY"] == "mine"
    assert "OPENAI_MODEL" not in os.environ


def test_a_script_gets_its_task_and_its_output_is_the_result(tmp_path):
    script = tmp_path / "s.py"
    script.write_text("import sys, json\nprint(json.loads(sys.argv[1])['x'] * 2)\n", encoding="utf-8")
    assert run_script(str(script), {"x": 21}) == "42\n"


def test_a_script_that_exits_with_an_error_is_an_agent_error(tmp_path):
    script = tmp_path / "s.py"
    script.write_text("raise SystemExit(3)\n", encoding="utf-8")
    with pytest.raises(AgentError, match="exited with 3"):
        run_script(str(script), {})


def test_what_cannot_be_loaded_is_named(tmp_path):
    with pytest.raises(InputNotFoundError, match=r"absent\.py: no such file"):
        load_agent(str(tmp_path / "absent.py"))
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_that_name\n", encoding="utf-8")
    with pytest.raises(AgentError, match="fails to import: ModuleNotFoundError"):
        load_function(f"{broken}:play")
    with pytest.raises(AgentError, match="cannot import 'no_such_package'"):
        load_function("no_such_package:play")
    with pytest.raises(AgentError, match=r"must name a function as FILE\.py:FUNCTION"):
        load_function("play.py")


def test_an_agent_may_import_its_neighbours(tmp_path):
    (tmp_path / "neighbour_module.py").write_text("VALUE = 5\n", encoding="utf-8")
    agent = tmp_path / "agent_with_neighbour.py"
    agent.write_text(
        "from neighbour_module import VALUE\n\ndef play(task):\n    return VALUE\n", encoding="utf-8"
    )
    assert load_function(f"{agent}:play")({}) == 5


LOOPING = """
import asyncio, contextvars, threading

async def answer(task):
    await asyncio.sleep(0)
    if task.get("raises"):
        raise KeyError("the game is broken")
    return {"x": task["x"], "thread": threading.current_thread().name, "trace": current(task)}

def current(task):
    return next((v.get() for v in contextvars.copy_context() if v.name == "trace"), None)

def play(task):
    return asyncio.run(answer(task))
"""
trace = contextvars.ContextVar("trace")


@pytest.mark.parametrize("name", ["play", "answer"])
def test_an_agent_may_run_its_own_event_loop_while_the_platform_s_runs(tmp_path, name):
    agent = tmp_path / f"looping_{name}.py"
    agent.write_text(LOOPING, encoding="utf-8")
    play = load_agent(f"{agent}:{name}")

    async def run_rollouts():
        trace.set("mine")
        return [play({"x": x}) for x in (1, 2)]

    results = asyncio.run(run_rollouts())
    assert [result["x"] for result in results] == [1, 2]
    assert {(result["thread"], result["trace"]) for result in results} == {("agent", "mine")}


def test_an_agent_that_raises_in_its_own_loop_raises_in_the_rollout(tmp_path):
    agent = tmp_path / "looping_raises.py"
    agent.write_text(LOOPING, encoding="utf-8")
    play = load_agent(f"{agent}:play")

    async def run_rollout():
        return play({"raises": True})

    with pytest.raises(KeyError, match="the game is broken"):
        asyncio.run(run_rollout())


def test_without_a_loop_the_agent_plays_where_it_is_called(tmp_path):
    agent = tmp_path / "looping_here.py"
    agent.write_text(LOOPING, encoding="utf-8")
    assert load_agent(f"{agent}:play")({"x": 1})["thread"] == threading.current_thread().name
