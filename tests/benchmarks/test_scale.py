"""The workload of the scale benchmark is what it says, and its page computes what it says."""

from collections import Counter

import pytest

from benchmarks.scale import workload
from benchmarks.scale.page import Measured, marginal, page
from benchmarks.scale.stages import Stage
from milegpo_plugin.files import read_input


def test_the_spans_are_rollouts_of_twenty_steps_in_groups_of_eight(tmp_path):
    spans = workload.make_spans(16)
    found = read_input([workload.write_trace_file(tmp_path / "spans.pb", spans)])
    assert len(spans) == 16 * workload.SPANS
    assert {len(rollout.steps) for rollout in found.trajectories} == {workload.STEPS}
    assert sorted(Counter(rollout.task_id for rollout in found.trajectories).values()) == [8, 8]
    assert {rollout.reward for rollout in found.trajectories} == {0.0, 1.0}
    assert found.skipped == []


def test_a_group_is_spread_over_the_files(tmp_path):
    paths = workload.write_rollouts(tmp_path, 40, 5)
    tasks = [{rollout.task_id for rollout in read_input([path]).trajectories} for path in paths]
    assert all(task == tasks[0] for task in tasks)
    assert len(tasks[0]) == 5


def test_a_day_is_counted_in_processor_hours_and_multiples_of_the_need():
    stage = Stage("rebuild", rollouts=1000, cpu_s=10.0, clock_s=20.0, traced=True)
    small, large = (
        Stage("job", count, seconds, seconds, 1.0) for count, seconds in ((10, 2.0), (1010, 12.0))
    )
    assert marginal(small, large).rollouts_a_cpu_second == pytest.approx(100)
    measured = Measured([stage], 0.5, [small, small], [large, large], [("spans", 1000.0, 100.0)])
    text = page(measured, machine="2 cores", load=3.0)
    assert "| rebuild | 100 | 2,000 | 4,100 | 9 | 2.78 |  |" in text
    assert "| spans | 1,000 | 1.0 | 0.1 |" in text
    assert "512 KiB for each rollout" in text
