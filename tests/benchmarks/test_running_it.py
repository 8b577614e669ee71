"""From jobs to tables and pictures, on very small parameters."""

import json

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
    "milegpo+",
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
            "robustness": ("milegpo", EXACT),
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
    program.write(results, tmp_path, program.Cost(processes=1, minutes=1.0, processor_minutes=1.0))
    text = (tmp_path / "ground_truth_tables.md").read_text(encoding="utf-8")
    assert "python -m benchmarks.ground_truth" in text
    assert all(f"| {name} |" in text for name in SHOWN)
    assert "nan" not in text
    stored = json.loads((tmp_path / "ground_truth.json").read_text(encoding="utf-8"))
    assert stored["mdps"] == SEEDS
    assert len(list(tmp_path.glob("*.svg"))) == 3


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


def test_processes_give_the_same_results_as_one(params, monkeypatch):
    """Spawned workers read the real parameters, so only jobs with those settings are compared."""
    whole = read_params()
    jobs = [LearningJob("coin", "grpo", whole.learning.learning_rate, True)]
    monkeypatch.setattr(running, "all_jobs", lambda params: jobs)
    found = running.run_all(whole.model_copy(update={"seeds": 1}), processes=2)
    assert np.array_equal(found[jobs[0]], run_job(jobs[0], 1))
