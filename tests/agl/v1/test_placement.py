"""Which tokens carry which advantage, against a slow merge that keeps a note on every token."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milegpo_plugin.agl.v1.placement import Batch, Placement, RowLimits, match_steps, place_advantages
from milegpo_plugin.agl.v1.segments import Turn
from milegpo_plugin.errors import TrainingError
from milegpo_plugin.types import Step, Trajectory

WIDTH = 12
ROOMY = RowLimits(20, WIDTH)


@st.composite
def conversations(draw: st.DrawFn) -> list[Turn]:
    """Model calls of which some go on with the one before, some at once, some after more tokens."""
    turns: list[Turn] = []
    for number in range(draw(st.integers(1, 5))):
        goes_on = bool(turns) and draw(st.booleans())
        history = [*turns[-1].prompt_ids, *turns[-1].response_ids] if goes_on else [100 + number]
        added = draw(st.lists(st.integers(1, 9), max_size=3))
        turns.append(Turn([*history, *added], draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))))
    return turns


def lay_out(turns: list[Turn], level: str, limits: RowLimits) -> list[tuple[list[int], list[int | None]]]:
    """Rows as Agent Lightning documents them: their response tokens, and the call that wrote each."""
    rows: list[tuple[list[int], list[tuple[int, int | None]]]] = []
    for number, (prompt, response) in enumerate(turns):
        answer = [(token, number) for token in response]
        context = [*rows[-1][0], *(token for token, _ in rows[-1][1])] if rows else []
        if level == "trajectory" and rows and list(prompt[: len(context)]) == context:
            rows[-1][1].extend([*((token, None) for token in prompt[len(context) :]), *answer])
        else:
            rows.append((list(prompt), answer))
    cut = [(tokens[: limits.response_after(len(prompt))], prompt) for prompt, tokens in rows]
    return [([token for token, _ in tokens], [owner for _, owner in tokens]) for tokens, _ in cut if tokens]


def batch_of(rows: list[tuple[list[int], list[int | None]]], dropped: list[bool] | None = None) -> Batch:
    response = np.zeros((len(rows), WIDTH), dtype=np.int64)
    mask = np.zeros((len(rows), WIDTH), dtype=np.bool_)
    for index, (tokens, owners) in enumerate(rows):
        response[index, : len(tokens)] = tokens
        mask[index, : len(owners)] = [owner is not None for owner in owners]
    return Batch(["r"] * len(rows), response, mask, np.array(dropped or [False] * len(rows)))


def trajectory_of(turns: list[Turn], rollout_id: str = "r") -> Trajectory:
    steps = [Step(prompt_token_ids=list(p), response_token_ids=list(r)) for p, r in turns]
    return Trajectory(task_id="t", rollout_id=rollout_id, reward=1.0, steps=steps)


def place(
    turns: list[Turn],
    level: str = "transition",
    limits: RowLimits = ROOMY,
    advantages: list[float] | None = None,
    batch: Batch | None = None,
    trajectory: Trajectory | None = None,
) -> Placement:
    given_advantages = None if advantages is None else np.array(advantages)
    return place_advantages(
        batch or batch_of(lay_out(turns, level, limits)),
        [trajectory or trajectory_of(turns)],
        {"r": turns},
        [given_advantages],
        level=level,
        limits=limits,
    )


@given(
    conversations(),
    st.sampled_from(["transition", "trajectory"]),
    st.integers(1, 12),
    st.none() | st.integers(4, 20),
)
def test_every_token_of_an_answer_carries_the_advantage_of_its_own_step(
    turns: list[Turn], level: str, response: int, total: int | None
) -> None:
    limits = RowLimits(6, response, total)
    rows = lay_out(turns, level, limits)
    advantages = [float(number + 1) for number in range(len(turns))]
    placement = place(turns, level, limits, advantages)
    expected = np.zeros((len(rows), WIDTH), dtype=np.float32)
    for index, (_, owners) in enumerate(rows):
        expected[index, : len(owners)] = [0 if owner is None else advantages[owner] for owner in owners]
    assert placement.score_RT.dtype == np.float32
    np.testing.assert_array_equal(placement.score_RT, expected)
    np.testing.assert_array_equal(placement.trained_RT, expected > 0)
    trained = {owner for _, owners in rows for owner in owners if owner is not None}
    assert len(placement.skipped) == len(turns) - len(trained)


def test_two_answers_that_touch_keep_their_own_advantages() -> None:
    turns = [Turn([1], [2, 3]), Turn([1, 2, 3], [4])]
    assert place(turns, "trajectory", advantages=[0.5, -0.25]).score_RT[0, :4].tolist() == [
        0.5,
        0.5,
        -0.25,
        0.0,
    ]


def test_a_rollout_without_credit_is_trained_nowhere() -> None:
    placement = place([Turn([1], [2, 3])], advantages=None)
    assert not placement.trained_RT.any()
    assert placement.skipped == []


def test_a_call_that_is_no_step_is_not_trained_but_its_neighbours_are() -> None:
    turns = [Turn([1], [2]), Turn([1, 2, 9], [3])]
    placement = place(turns, "trajectory", advantages=[0.5], trajectory=trajectory_of(turns[:1]))
    assert placement.trained_RT[0, :3].tolist() == [True, False, False]


def test_of_two_steps_with_one_prompt_the_later_one_is_trained_and_the_other_named() -> None:
    last = Turn([1], [5])
    trajectory = trajectory_of([Turn([1], [4]), last])
    placement = place([last], advantages=[0.5, 0.75], trajectory=trajectory)
    assert placement.score_RT[0, 0] == 0.75
    assert [(item.id, item.reason) for item in placement.skipped] == [("r#0", "same prompt as a later call")]


def test_each_reason_for_a_step_without_a_row_is_named() -> None:
    turns = [Turn([1] * 9, [2]), Turn([3], [4] * 3), Turn([3, 4, 4, 4, 7], [8])]
    limits = RowLimits(6, 4)
    rows = lay_out(turns, "trajectory", limits)
    steps = [*trajectory_of(turns).steps, Step(), Step(prompt_token_ids=[1], response_token_ids=[])]
    trajectory = Trajectory(task_id="t", rollout_id="r", steps=steps)
    placement = place(
        turns, "trajectory", limits, [1.0] * 5, batch=batch_of(rows, [True, False]), trajectory=trajectory
    )
    assert {item.id: item.reason for item in placement.skipped} == {
        "r#0": "prompt too long",
        "r#2": "response too long",
        "r#3": "no token ids",
        "r#4": "empty response",
    }


def test_steps_without_prompt_ids_are_matched_in_order() -> None:
    steps = [Step(response_token_ids=[1]), Step(response_token_ids=[1])]
    assert match_steps([Turn([], [1]), Turn([], [1]), Turn([], [1])], steps) == [0, 1, None]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([([2], [0]), ([5], [1]), ([5], [1])], "must have 2 rows, got 3"),
        ([([2], [0]), ([6], [1])], "the answer of call 1 at 0, got other tokens"),
        ([([2], [0]), ([5, 0], [1, 1])], "a mask over 1 tokens, got another one"),
    ],
    ids=["another number of rows", "another token", "another mask"],
)
def test_rows_that_were_merged_in_an_unknown_way_are_refused(
    rows: list[tuple[list[int], list[int | None]]], words: str
) -> None:
    turns = [Turn([1], [2]), Turn([4], [5])]
    with pytest.raises(TrainingError, match=words):
        place(turns, "trajectory", advantages=[1.0, 1.0], batch=batch_of(rows))
