"""From jobs to tables and pictures, on very small parameters."""

import csv
import pickle

import numpy as np
import pytest

from benchmarks.ground_truth import __main__ as program
from benchmarks.ground_truth import jobs as jobs_module
from benchmarks.ground_truth import running
from benchmarks.ground_truth.jobs import LearningJob, all_jobs, run_job
from benchmarks.ground_truth.params import EXACT, read_params
from benchmarks.ground_truth.results import Results
from benchmarks.ground_truth.statistics import interval

SEEDS = 3
SHOWN = (
    "grpo",
    "gigpo",
    "graphgpo",
    "md",
    "rcs",
    "milegpo webshop",
    "milegpo",
    "milegpo, lower bound",
    "plangpo",
)


@pytest.fixture(scope="module")
def params():
    whole = read_params()
    learning = whole.learning.model_copy(update={"iterations": 3, "other_rates": (1.0,), "raw_rates": (0.3,)})
    measurement = whole.measurement.model_copy(
        update={"groups": 1, "strengths": (0.3,), "group_sizes": (4, 8)}
    )
    return whole.model_copy(
        update={
            "seeds": SEEDS,
            "families": {name: whole.families[name] for name in ("two_rooms", "coin")},
            "estimators": {name: whole.estimators[name] for name in SHOWN},
            "robustness": ("grpo", "gigpo", "graphgpo", "milegpo", "plangpo", EXACT),
            "learning": learning,
            "measurement": measurement,
        }
    )


@pytest.fixture(scope="module")
def results(params):
    patch = pytest.MonkeyPatch()
    patch.setattr(jobs_module, "read_params", lambda: params)
    found = {job: run_job(job, SEEDS) for job in all_jobs(params)}
    patch.undo()
    return Results(params, found)


def test_every_figure_of_the_tables_has_its_job(results, tmp_path):
    program.write(results, tmp_path, "1.0 processor minutes")
    text = (tmp_path / "ground_truth_tables.md").read_text(encoding="utf-8")
    assert "`make bench-credit`: 1.0 processor minutes" in text
    assert all(f"| {name} |" in text for name in SHOWN)
    assert "nan" not in text
    assert len(list(tmp_path.glob("*.svg"))) == 3


def test_the_csv_files_hold_every_curve_area_and_figure(results, tmp_path):
    program.write(results, tmp_path, "")
    learning, measured, curves = (
        list(csv.DictReader((tmp_path / f"ground_truth_{name}.csv").read_text(encoding="utf-8").splitlines()))
        for name in ("learning", "measured", "curves")
    )
    assert len(learning) == sum(isinstance(job, LearningJob) for job in results.found)
    assert {row["figure"] for row in measured} >= {"sign agreement", "rank correlation", "trap precision"}
    first = next(row for row in curves if (row["family"], row["estimator"]) == ("coin", "milegpo"))
    assert float(first["after 3"]) == pytest.approx(results.curve("coin", "milegpo")[3].mean(), abs=1e-4)


def test_a_job_gives_the_same_result_every_time(results, params, monkeypatch):
    monkeypatch.setattr(jobs_module, "read_params", lambda: params)
    job = LearningJob("two_rooms", "milegpo", params.learning.learning_rate, True)
    assert np.array_equal(run_job(job, SEEDS), results.found[job])


def test_learning_from_the_truth_learns(results):
    for family in results.params.families:
        curve = results.curve(family, EXACT).mean(axis=1)
        assert curve[-1] > curve[0] + 0.05


def test_a_paired_difference_to_oneself_is_zero(results):
    assert results.difference("coin", "milegpo", "milegpo") == (0, 0, 0)
    assert results.better_everywhere("milegpo", ["milegpo"]) == []


def test_the_bootstrap_interval_covers_the_mean_of_what_is_known():
    found = interval([1.0, 2.0, np.nan, 3.0])
    assert found.mean == 2
    assert 1 <= found.low < 2 < found.high <= 3
    assert interval([np.nan]) is None


def test_processes_give_the_same_results_as_one_and_an_interrupted_run_goes_on(monkeypatch, tmp_path):
    """Spawned workers read the real parameters, so only jobs with those settings are compared."""
    whole = read_params().model_copy(update={"seeds": 1})
    jobs = [LearningJob("coin", name, whole.learning.learning_rate, True) for name in ("grpo", "gigpo")]
    monkeypatch.setattr(running, "all_jobs", lambda params: jobs[:1])
    found, _ = running.run_all(whole, processes=1, kept=tmp_path)
    assert np.array_equal(found[jobs[0]], run_job(jobs[0], 1))

    (file,) = tmp_path.glob("*/*.pickle")
    file.write_bytes(pickle.dumps(("kept", 60.0)))
    monkeypatch.setattr(running, "all_jobs", lambda params: jobs)
    again, seconds = running.run_all(whole, processes=2, kept=tmp_path)
    assert again[jobs[0]] == "kept"
    assert np.array_equal(again[jobs[1]], run_job(jobs[1], 1))
    assert seconds > 60


def test_other_parameters_do_not_meet_kept_results(params):
    fewer = params.model_copy(update={"seeds": SEEDS - 1})
    assert running._digest(params) != running._digest(fewer)
