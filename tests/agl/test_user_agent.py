from __future__ import annotations

import os

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
