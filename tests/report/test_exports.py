from __future__ import annotations

import builtins
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet
import pytest
from PIL import Image

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.errors import CreditError, MissingDependencyError
from milegpo_plugin.report.export import write_csv, write_json, write_parquet
from milegpo_plugin.report.facts import Facts
from milegpo_plugin.report.page import batch_facts
from milegpo_plugin.report.picture import choose_group, write_png
from milegpo_plugin.types import Trajectory


@pytest.fixture
def facts(fork: Callable[[], list[Trajectory]]) -> Facts:
    return batch_facts(fork(), CreditConfig(), CreditConfig(estimator="grpo"))


def test_json_holds_settings_figures_and_every_step_state_and_move(facts: Facts, tmp_path: Path) -> None:
    (path,) = write_json(facts, tmp_path / "r.json")
    document = orjson.loads(path.read_bytes())
    assert document["config"]["estimator"] == "milegpo"
    assert document["figures"]["rollouts"] == 4
    assert (len(document["steps"]), len(document["states"]), len(document["moves"])) == (12, 5, 5)
    step = document["steps"][1]
    assert (step["task_id"], step["rollout_id"], step["step"]) == ("fork", "r0", 1)
    assert (step["state"], step["action"], step["next_state"]) == ("fork", "left", "bridge")
    assert step["graph_part"] + step["milestone_part"] + step["episode_part"] == pytest.approx(
        step["advantage"]
    )
    assert step["other_advantage"] == pytest.approx(step["episode_part"])
    assert "It enters milestone M1." in step["why"]


def test_csv_and_parquet_hold_the_same_values_as_json(facts: Facts, tmp_path: Path) -> None:
    document = orjson.loads(write_json(facts, tmp_path / "r.json")[0].read_bytes())
    names = ["r.steps", "r.states", "r.moves"]
    assert [path.name for path in write_csv(facts, tmp_path / "r.csv")] == [f"{name}.csv" for name in names]
    assert [p.name for p in write_parquet(facts, tmp_path / "r.parquet")] == [f"{n}.parquet" for n in names]
    for name in ("steps", "states", "moves"):
        with (tmp_path / f"r.{name}.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert pyarrow.parquet.read_table(tmp_path / f"r.{name}.parquet").to_pylist() == document[name]
        assert [list(row) for row in rows] == [list(record) for record in document[name]]
    with (tmp_path / "r.steps.csv").open(encoding="utf-8", newline="") as stream:
        assert [float(row["advantage"]) for row in csv.DictReader(stream)] == [
            step["advantage"] for step in document["steps"]
        ]


def test_unknown_values_are_null_in_every_export(
    fork: Callable[[], list[Trajectory]], tmp_path: Path
) -> None:
    facts = batch_facts(fork(), CreditConfig(estimator="grpo"))
    step = orjson.loads(write_json(facts, tmp_path / "r.json")[0].read_bytes())["steps"][0]
    assert step["graph_part"] is None
    assert step["other_advantage"] is None
    write_csv(facts, tmp_path / "r.csv")
    with (tmp_path / "r.steps.csv").open(encoding="utf-8", newline="") as stream:
        assert next(csv.DictReader(stream))["graph_part"] == ""


def test_hostile_text_is_exported_as_it_was_recorded(
    hostile_batch: Callable[[], list[Trajectory]], tmp_path: Path
) -> None:
    batch = hostile_batch()
    facts = batch_facts(batch, CreditConfig())
    write_parquet(facts, tmp_path / "r.parquet")
    states = pyarrow.parquet.read_table(tmp_path / "r.steps.parquet").column("state").to_pylist()
    assert set(states) == {step.state for trajectory in batch for step in trajectory.steps}
    write_csv(facts, tmp_path / "r.csv")
    csv.field_size_limit(10_000_000)
    with (tmp_path / "r.steps.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == len(states)


def test_a_picture_of_a_group_is_drawn(facts: Facts, tmp_path: Path) -> None:
    (path,) = write_png(facts, tmp_path / "graph.png")
    image = Image.open(path).convert("RGB")
    assert min(image.size) > 500
    assert len(image.getcolors(1_000_000)) > 50


@pytest.mark.filterwarnings("error")
def test_a_picture_of_hostile_text_and_of_a_group_without_success_is_drawn(
    hostile_batch: Callable[[], list[Trajectory]], fork: Callable[[], list[Trajectory]], tmp_path: Path
) -> None:
    assert write_png(batch_facts(hostile_batch(), CreditConfig()), tmp_path / "hostile.png")[0].is_file()
    assert write_png(batch_facts(fork()[2:], CreditConfig()), tmp_path / "lost.png")[0].is_file()


def test_the_picture_shows_the_asked_task_or_the_first_with_both_outcomes(
    play_houses: Callable[..., list[Trajectory]],
) -> None:
    facts = batch_facts(play_houses(8, 8, 50), CreditConfig())
    assert choose_group(facts, "house 03: bring the key to the chest") == 3
    rate = facts.credit.graph.success_rate_G[choose_group(facts, None)]
    assert 0 < rate < 1
    with pytest.raises(CreditError, match=r"task must be one of .*got 'castle'"):
        choose_group(facts, "castle")


@pytest.mark.parametrize(("package", "write"), [("pyarrow", write_parquet), ("matplotlib", write_png)])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    facts: Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, write: Callable[..., Any]
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"pip install 'milegpo-plugin\[report\]'"):
        write(facts, tmp_path / "out")
