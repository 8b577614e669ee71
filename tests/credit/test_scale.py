"""Long rollouts and large batches."""

from __future__ import annotations

import time

import numpy as np
import pytest

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit
from milegpo_plugin.types import Step, Trajectory


@pytest.fixture(scope="module")
def long_batch():
    chain = [Step(state=f"s{number}") for number in range(100_000)]
    loop = [chain[number % 7] for number in range(100_000)]
    return [
        Trajectory.model_construct(task_id="t", rollout_id="r0", reward=1.0, steps=chain),
        Trajectory.model_construct(task_id="t", rollout_id="r1", reward=0.0, steps=loop),
    ]


@pytest.mark.parametrize("estimator", ["milegpo", "plangpo", "hgpo", "gigpo"])
def test_a_rollout_of_a_hundred_thousand_steps_gets_credit(long_batch, estimator):
    credit = assign_credit(long_batch, CreditConfig(estimator=estimator, potential_decay=0.9999))
    assert np.isfinite(credit.advantage_S).all()
    assert credit.graph.goal_distance_N[0] == 100_000
    assert credit.advantages(0).shape == (100_000,)


def test_the_time_of_a_transition_does_not_grow_with_the_batch():
    def seconds_a_step(groups):
        batch = [
            Trajectory(
                task_id=f"t{group}",
                rollout_id=f"r{number}",
                reward=float(number % 2),
                steps=[Step(state=f"s{(step * (number + 3)) % 31}") for step in range(25)],
            )
            for group in range(groups)
            for number in range(8)
        ]
        best = min(_timed(batch) for _ in range(3))
        return best / (groups * 200)

    assert seconds_a_step(200) < 3 * seconds_a_step(20)


def _timed(batch):
    start = time.process_time()
    assign_credit(batch)
    return time.process_time() - start
