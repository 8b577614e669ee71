from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from milegpo_plugin.errors import TrainingError
from milegpo_plugin.rows import build_rows
from milegpo_plugin.types import Skipped, Step, Trajectory


class FixedCredit:
    def __init__(self, *advantages: Sequence[float] | None):
        self.values = advantages

    def advantages(self, index: int, /) -> NDArray[np.float64] | None:
        values = self.values[index]
        return None if values is None else np.array(values, dtype=np.float64)


def step(prompt: list[int] | None, response: list[int] | None, logprobs: list[float] | None = None) -> Step:
    return Step(prompt_token_ids=prompt, response_token_ids=response, logprobs=logprobs)


def trajectory(*steps: Step, rollout_id: str = "r1") -> Trajectory:
    return Trajectory(task_id="t", rollout_id=rollout_id, steps=list(steps))


def test_rows_of_one_rollout_carry_their_own_advantages_on_every_response_token() -> None:
    one = trajectory(step([1, 2], [3, 4, 5], [-0.1, -0.2, -0.3]), step([1, 2, 3], [6]))
    first, second = build_rows([one], FixedCredit([0.5, -2.0])).rows
    assert first.advantages_T.tolist() == [0.5, 0.5, 0.5]
    assert second.advantages_T.tolist() == [-2.0]
    assert first.advantages_T.dtype == np.float32
    assert first.logprobs_T is not None
    assert first.logprobs_T.tolist() == pytest.approx([-0.1, -0.2, -0.3])
    assert second.logprobs_T is None
    assert (first.task_id, first.rollout_index, first.step_index) == ("t", 0, 0)
    assert (second.rollout_index, second.step_index) == (0, 1)


def test_every_step_without_a_row_is_counted_with_its_reason() -> None:
    one = trajectory(step(None, [1]), step([1], None), step([1], []), step([1] * 9, [2]), step([1], [2] * 9))
    batch = build_rows([one], FixedCredit([1.0] * 5), max_prompt_tokens=8, max_response_tokens=8)
    assert len(batch) == 0
    assert batch.skipped == (
        Skipped("step", "r1#0", "no token ids"),
        Skipped("step", "r1#1", "no token ids"),
        Skipped("step", "r1#2", "empty response"),
        Skipped("step", "r1#3", "prompt too long"),
        Skipped("step", "r1#4", "response too long"),
    )
    assert batch.skip_counts() == {
        "no token ids": 2,
        "empty response": 1,
        "prompt too long": 1,
        "response too long": 1,
    }


def test_a_rollout_without_credit_is_skipped_alone() -> None:
    good, bad = trajectory(step([1], [2])), trajectory(step([1], [2]), rollout_id="r2")
    batch = build_rows([bad, good], FixedCredit(None, [1.0]))
    assert [row.rollout_index for row in batch.rows] == [1]
    assert batch.skipped == (Skipped("rollout", "r2", "no credit"),)


def test_log_probabilities_that_do_not_match_the_tokens_are_unknown() -> None:
    (row,) = build_rows([trajectory(step([1], [2, 3], [-0.5]))], FixedCredit([1.0])).rows
    assert row.logprobs_T is None


@pytest.mark.parametrize(
    ("advantages", "message"),
    [
        ([1.0, 2.0], "rollout r1: credit must have one advantage per step"),
        ([float("nan")], "rollout r1, step 0: the advantage must be finite"),
    ],
    ids=["wrong length", "not finite"],
)
def test_unusable_credit_names_the_rollout(advantages: list[float], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        build_rows([trajectory(step([1], [2]))], FixedCredit(advantages))
