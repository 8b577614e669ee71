from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.errors import ConfigError, InputNotFoundError
from milegpo_plugin.report.command import report
from milegpo_plugin.types import Trajectory


@pytest.fixture
def batch(
    tmp_path: Path, fork: Callable[[], list[Trajectory]], save: Callable[[Path, list[Trajectory]], Path]
) -> Path:
    return save(tmp_path / "batch.jsonl", fork())


def told(inputs: list[Path], output: Path | None, **options: Any) -> list[str]:
    lines: list[str] = []
    report(inputs, output, config=CreditConfig(), tell=lines.append, **options)
    return lines


@pytest.mark.parametrize(
    ("file_format", "names"),
    [
        ("html", ["r.html"]),
        ("json", ["r.json"]),
        ("csv", ["r.moves.csv", "r.states.csv", "r.steps.csv"]),
        ("parquet", ["r.moves.parquet", "r.states.parquet", "r.steps.parquet"]),
        ("png", ["r.png"]),
    ],
)
def test_each_format_is_written_and_told(batch: Path, file_format: str, names: list[str]) -> None:
    lines = told([batch], batch.with_name(f"r.{file_format}"), file_format=file_format)
    assert sorted(path.name for path in batch.parent.glob("r.*")) == names
    assert lines[0].startswith("wrote ")
    assert all(name in lines[0] for name in names)


def test_the_page_is_told_with_its_size_and_what_it_shows(batch: Path) -> None:
    (line,) = told([batch], batch.with_name("r.html"))
    assert line.endswith("r.html (2.0 MB, 4 of 4 rollouts)")


def test_a_folder_is_a_training_run(make_run: Callable[..., Path], tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", done=1)
    assert told([run], None)[0].startswith(f"wrote {run / 'report.html'}")
    assert len(told([make_run(tmp_path / "done", done=1, planned=1)], tmp_path / "w.html", watch=True)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"file_format": "pdf"}, r"--format must be one of html, json, csv, parquet, png, got 'pdf'"),
        ({"watch": True}, "--watch follows a training run"),
        ({"task": "fork"}, "--task chooses the group of --format png"),
    ],
)
def test_an_option_that_does_not_fit_is_one_clear_error(
    batch: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        told([batch], batch.with_name("r.html"), **options)


def test_a_run_has_no_export(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--format csv needs a batch.*trajectories/0001.jsonl.gz"):
        told([tmp_path], None, file_format="csv")


def test_an_export_into_a_missing_folder_is_one_clear_error(batch: Path) -> None:
    with pytest.raises(InputNotFoundError, match="no such folder"):
        told([batch], batch.parent / "absent" / "r.csv", file_format="csv")
