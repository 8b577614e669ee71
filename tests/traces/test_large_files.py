"""Large traces are rebuilt rollout by rollout, and nothing but an outline of each is held."""

from __future__ import annotations

import gzip

import pytest
from typer.testing import CliRunner

from milegpo_plugin import files
from milegpo_plugin.cli import app
from milegpo_plugin.files import TrajectoryWriter, read_input, read_trajectories
from milegpo_plugin.report.tables import flag_table, trajectory_table
from milegpo_plugin.streams import outline
from milegpo_plugin.types import Action, Step, Trajectory

NAMES = ("openinference_openai", "pydantic_ai", "traceloop_openai__two_threads", "agentlightning03_agentops")


@pytest.fixture
def paths(traces):
    return [traces / f"{name}.otlp.jsonl" for name in NAMES]


@pytest.fixture
def every_file_is_large(monkeypatch):
    monkeypatch.setattr(files, "LARGE_BYTES", 0)


def by_content(trajectories):
    return sorted(trajectory.model_dump_json() for trajectory in trajectories)


def test_large_files_give_what_small_ones_give(paths, monkeypatch):
    small = read_input(paths)
    monkeypatch.setattr(files, "LARGE_BYTES", 0)
    large = read_input(paths)
    assert by_content(large.trajectories) == by_content(small.trajectories)
    assert large.counts == small.counts


def test_a_rollout_is_handed_over_before_the_next_one_is_rebuilt(paths, every_file_is_large, monkeypatch):
    order = []
    rebuild = files.rebuild_in_parts.__globals__["rebuild_part"]

    def watched(*given, **named):
        order.append("rebuild")
        return rebuild(*given, **named)

    monkeypatch.setitem(files.rebuild_in_parts.__globals__, "rebuild_part", watched)
    read_input(paths, each=lambda trajectory: order.append("hand over") or trajectory)
    handed_over = [place for place, what in enumerate(order) if what == "hand over"]
    assert len(handed_over) == 5
    assert handed_over[0] < order.index("rebuild", handed_over[0])


def test_the_command_writes_every_rollout_whole(paths, every_file_is_large, tmp_path):
    output = tmp_path / "trajectories.jsonl"
    result = CliRunner().invoke(app, ["trajectories", *map(str, paths), "-o", str(output), "--plain"])
    assert result.exit_code == 0, result.output
    assert "wrote 5 rollouts" in result.output
    written = list(read_trajectories(output, pytest.fail))
    assert by_content(written) == by_content(read_input(paths).trajectories)


def test_an_outline_shows_the_same_in_every_table(paths):
    whole = read_input(paths).trajectories
    outlines = [outline(trajectory) for trajectory in whole]
    for table in (trajectory_table, flag_table):
        kept, all_of_it = table(outlines), table(whole)
        assert [[*column.cells] for column in kept.columns] == [
            [*column.cells] for column in all_of_it.columns
        ]
    for rollout in outlines:
        assert {(step.action.text, *step.observation) for step in rollout.steps} == {(None,)}
        assert not any(step.prompt_token_ids or step.response_token_ids for step in rollout.steps)


def test_the_writer_compresses_and_makes_no_file_after_an_error(tmp_path):
    rollout = Trajectory(task_id="t", rollout_id="r", steps=[Step(action=Action(text="go"))])
    with TrajectoryWriter(tmp_path / "out.jsonl.gz") as writer:
        writer.write(rollout)
    with gzip.open(tmp_path / "out.jsonl.gz") as stream:
        assert Trajectory.model_validate_json(stream.read()) == rollout
    with pytest.raises(ValueError, match="no rollout"), TrajectoryWriter(tmp_path / "none.jsonl"):
        raise ValueError("no rollout")
    assert not (tmp_path / "none.jsonl").exists()
