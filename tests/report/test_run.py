"""The page of a training run, and how it is kept up to date."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from milegpo_plugin.errors import ConfigError, InputNotFoundError, TraceError
from milegpo_plugin.report.page import write_run_report
from milegpo_plugin.report.run_files import read_run
from milegpo_plugin.report.watch import watch_run


def page_data(page: Path) -> Any:
    packed = re.search(r'id="data">([^<]*)<', page.read_text(encoding="utf-8"))
    assert packed is not None
    return orjson.loads(gzip.decompress(base64.b64decode(packed[1])))


def test_the_page_of_a_run_lies_in_its_folder_and_shows_first_middle_and_last_groups(
    make_run: Callable[..., Path], tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run", done=5)
    summary = write_run_report(run)
    assert summary.path == run / "report.html"
    labels = [group["label"] for group in page_data(summary.path)["groups"]]
    assert list(dict.fromkeys(labels)) == ["iteration 1", "iteration 3", "iteration 5"]


def test_the_head_of_a_runs_page_tells_where_it_started_and_where_it_is(
    make_run: Callable[..., Path], tmp_path: Path
) -> None:
    source = write_run_report(make_run(tmp_path / "run", done=5)).path.read_text(encoding="utf-8")
    for words in ("Training run run", "started at 25.0%", "55.0%", "at iteration 5", "60 s", "no token ids"):
        assert words in source
    for title in ("Success", "Return", "Groups without signal", "Milestones and traps", "Time"):
        assert f"<figcaption>{title}</figcaption>" in source


def test_curves_hold_the_values_of_the_metrics(make_run: Callable[..., Path], tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", done=4, planned=4)
    success, *_, time = page_data(write_run_report(run).path)["figures"]
    validation = success["data"][0]
    assert (validation["name"], validation["x"]) == ("validation", [0, 2, 4])
    assert validation["y"] == pytest.approx([0.25, 0.37, 0.49])
    assert [bar["name"] for bar in time["data"]] == ["collect", "credit", "update"]


def test_a_run_without_kept_rollouts_shows_its_curves(make_run: Callable[..., Path], tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", done=2, keep=False)
    data = page_data(write_run_report(run).path)
    assert data["groups"] == []
    assert len(data["figures"]) > 3


def test_a_run_that_only_just_started_has_a_page(make_run: Callable[..., Path], tmp_path: Path) -> None:
    assert write_run_report(make_run(tmp_path / "run", done=0)).groups == 0


def test_a_line_that_is_still_being_written_is_left_for_later(
    make_run: Callable[..., Path], tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run", done=2)
    with (run / "metrics.jsonl").open("ab") as stream:
        stream.write(b'{"iteration": 3, "succ')
    assert [record["iteration"] for record in read_run(run).metrics] == [0, 1, 2]


def test_rollouts_of_an_unfinished_iteration_are_left_for_later(
    make_run: Callable[..., Path], tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run", done=2)
    (run / "trajectories" / "0003.jsonl.gz").write_bytes(b"half of it")
    assert read_run(run).chosen_iterations() == [1, 2]


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("metrics.jsonl", "[1]\n", TraceError, r"metrics.jsonl:1: must be a JSON object with an iteration"),
        ("metrics.jsonl", "{]\n", TraceError, r"metrics.jsonl:1: not valid JSON"),
        ("config.yaml", "credit: {estimator: best}", ConfigError, r"estimator.*got 'best'"),
    ],
)
def test_a_broken_file_of_a_run_is_one_clear_error(
    make_run: Callable[..., Path],
    tmp_path: Path,
    name: str,
    content: str,
    error: type[Exception],
    message: str,
) -> None:
    run = make_run(tmp_path / "run", done=1)
    (run / name).write_text(content, encoding="utf-8")
    with pytest.raises(error, match=message):
        write_run_report(run)


def test_a_folder_that_is_no_run_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError, match=r"metrics.jsonl: no such file"):
        write_run_report(tmp_path)
    with pytest.raises(InputNotFoundError, match="no such folder"):
        watch_run(tmp_path / "absent", on_write=print)


def test_watching_writes_the_page_at_each_change_until_the_run_is_done(
    make_run: Callable[..., Path], tmp_path: Path
) -> None:
    run, finished = (
        make_run(tmp_path / "run", done=2, planned=3),
        make_run(tmp_path / "done", done=3, planned=3),
    )
    pages: list[str] = []
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            (run / "metrics.jsonl").write_bytes((finished / "metrics.jsonl").read_bytes())

    watch_run(
        run,
        on_write=lambda summary: pages.append(summary.path.read_text(encoding="utf-8")),
        seconds=4.0,
        sleep=sleep,
    )
    assert len(pages) == 2
    assert waits == [4.0, 4.0, 4.0]
    assert 'data-refresh="4"' in pages[0]
    assert "data-refresh" not in pages[1]


def test_watching_waits_for_the_first_iteration(make_run: Callable[..., Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    written: list[Path] = []

    def sleep(_: float) -> None:
        run.rmdir()
        make_run(run, done=1, planned=1)

    watch_run(run, on_write=lambda summary: written.append(summary.path), sleep=sleep)
    assert written == [run / "report.html"]
