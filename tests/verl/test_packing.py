"""Rows of the trainer: checked against a slow re-merge that follows every token on its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from milegpo_plugin.agl.verl.estimator import spread_step_advantages
from milegpo_plugin.agl.verl.packing import Limits, Packed, pack_rows
from milegpo_plugin.agl.verl.tensors import build_batch
from milegpo_plugin.rows import Row

WIDE = Limits(prompt=1000, response=1000)


def call(step: int, prompt: list[int], response: list[int], advantage: float = 1.0, rollout: int = 0) -> Row:
    return Row(
        task_id="task",
        rollout_index=rollout,
        step_index=step,
        prompt_token_ids_T=np.array(prompt, dtype=np.int64),
        response_token_ids_T=np.array(response, dtype=np.int64),
        logprobs_T=None,
        advantage=np.float32(advantage),
    )


def pack(calls: list[Row], level: str, limits: Limits = WIDE) -> Packed:
    return pack_rows(calls, [f"r{i}" for i in range(10)], level, limits)


def advantages_of(packed: Packed, limits: Limits) -> torch.Tensor:
    """What verl trains on, [rows, tokens]."""
    batch = build_batch(
        packed.rows,
        limits,
        data_ids=["d"] * 10,
        rollout_ids=[f"r{i}" for i in range(10)],
        pad_token_id=0,
        device=torch.device("cpu"),
    ).batch
    return spread_step_advantages(batch["token_level_scores"], batch["response_mask"])[0]


def test_a_transition_row_is_one_call():
    packed = pack([call(0, [1, 2], [3], 0.5), call(1, [1, 2, 3, 4], [5, 6], -0.5)], "transition")
    assert [row.prompt_T.tolist() for row in packed.rows] == [[1, 2], [1, 2, 3, 4]]
    assert [row.response_T.tolist() for row in packed.rows] == [[3], [5, 6]]
    assert [row.score_T.tolist() for row in packed.rows] == [[0.5], [0.0, -0.5]]


def test_a_trajectory_row_is_a_conversation_with_the_prompts_masked_out():
    packed = pack([call(0, [1, 2], [3, 4], 0.5), call(1, [1, 2, 3, 4, 7, 8], [5], -0.5)], "trajectory")
    (row,) = packed.rows
    assert row.prompt_T.tolist() == [1, 2]
    assert row.response_T.tolist() == [3, 4, 7, 8, 5]
    assert row.mask_T.tolist() == [True, True, False, False, True]
    assert row.score_T.tolist() == [0.0, 0.5, 0.0, 0.0, -0.5]
    assert row.step_indices == (0, 1)
    assert packed.split_rollouts == 0


def test_a_rewritten_history_splits_and_loses_no_step():
    packed = pack(
        [call(0, [1], [2], 1.0), call(1, [1, 9, 3], [4], 2.0), call(2, [1, 9, 3, 4, 5], [6], 3.0)],
        "trajectory",
    )
    assert [row.step_indices for row in packed.rows] == [(0,), (1, 2)]
    assert packed.split_rollouts == 1


def test_two_agents_that_take_turns_keep_one_row_each():
    calls = [call(0, [1], [2]), call(1, [8], [9]), call(2, [1, 2, 3], [4]), call(3, [8, 9, 3], [4])]
    assert [row.step_indices for row in pack(calls, "trajectory").rows] == [(0, 2), (1, 3)]


def test_calls_that_touch_stay_apart_so_that_a_zero_advantage_is_not_overwritten():
    packed = pack([call(0, [1], [2], 0.0), call(1, [1, 2], [3], 5.0)], "trajectory")
    assert [row.step_indices for row in packed.rows] == [(0,), (1,)]


def test_rollouts_are_never_merged_with_each_other():
    packed = pack([call(0, [1], [2], rollout=0), call(0, [1, 2, 3], [4], rollout=1)], "trajectory")
    assert [row.rollout_index for row in packed.rows] == [0, 1]


def test_a_first_prompt_that_is_too_long_is_skipped_with_its_reason():
    for level in ("transition", "trajectory"):
        packed = pack([call(0, [1, 2, 3], [4])], level, Limits(prompt=2, response=5))
        assert packed.rows == []
        assert [(item.kind, item.id, item.reason) for item in packed.skipped] == [
            ("step", "r0#0", "prompt too long")
        ]


def test_a_split_conversation_lets_a_long_history_run_into_the_response_unmasked():
    packed = pack(
        [call(0, [1], [2], 1.0), call(1, [7, 8, 9], [4], 2.0)], "trajectory", Limits(prompt=2, response=4)
    )
    row = packed.rows[1]
    assert row.prompt_T.tolist() == [7, 8]
    assert row.response_T.tolist() == [9, 4]
    assert row.mask_T.tolist() == [False, True]


def test_a_long_response_is_cut_and_what_is_left_keeps_its_advantage():
    (row,) = pack([call(0, [1], [2, 3, 4], 0.5)], "transition", Limits(prompt=5, response=2)).rows
    assert row.response_T.tolist() == [2, 3]
    assert row.score_T.tolist() == [0.0, 0.5]
    assert row.truncated


def test_steps_behind_the_cut_are_counted():
    calls = [
        call(0, [1], [2, 3], 1.0),
        call(1, [1, 2, 3, 4], [5], 2.0),
        call(2, [1, 2, 3, 4, 5, 6], [7], 3.0),
    ]
    packed = pack(calls, "trajectory", Limits(prompt=5, response=4))
    assert packed.rows[0].step_indices == (0, 1)
    assert [(item.id, item.reason) for item in packed.skipped] == [("r0#2", "response too long")]


tokens = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@st.composite
def rollouts(draw) -> list[Row]:
    """Calls of one rollout; a prompt goes on from an earlier call, or starts anew."""
    calls: list[Row] = []
    for step in range(draw(st.integers(1, 6))):
        source = draw(st.none() | st.integers(0, len(calls) - 1)) if calls else None
        context: list[int] = []
        if source is not None:
            context = [*calls[source].prompt_token_ids_T, *calls[source].response_token_ids_T]
        new = draw(st.lists(st.integers(1, 3), min_size=0 if context else 1, max_size=3))
        advantage = draw(st.sampled_from([0.0, 0.25, -1.5, 3.0]))
        calls.append(call(step, context + new, draw(tokens), advantage))
    return calls


def slow_rows(
    calls: list[Row], level: str, limits: Limits
) -> list[tuple[list[int], list[tuple[int, float | None]]]]:
    """Prompt and (token, advantage or None outside the policy's tokens), followed token by token."""
    chains: list[list[Row]] = []
    for item in calls:
        best = None
        for chain in chains:
            context = [*chain[-1].prompt_token_ids_T, *chain[-1].response_token_ids_T]
            prompt = list(item.prompt_token_ids_T)
            longer = best is None or len(context) > len(best[-1].prompt_token_ids_T) + len(
                best[-1].response_token_ids_T
            )
            if (
                level == "trajectory"
                and prompt[: len(context)] == context
                and len(prompt) > len(context)
                and longer
            ):
                best = chain
        if best is None:
            chains.append([item])
        else:
            best.append(item)
    rows = []
    for number, chain in enumerate(chains):
        sequence: list[tuple[int, float | None]] = []
        for item in chain:
            sequence += [(int(t), None) for t in item.prompt_token_ids_T[len(sequence) :]]
            sequence += [(int(t), float(item.advantage)) for t in item.response_token_ids_T]
        length = len(chain[0].prompt_token_ids_T)
        if length > limits.prompt and (number == 0 or level == "transition"):
            continue
        origin = min(length, limits.prompt)
        response = sequence[origin : origin + limits.response]
        if any(advantage is not None for _, advantage in response):
            rows.append(([t for t, _ in sequence[:origin]], response))
    return rows


@settings(max_examples=300, deadline=None)
@given(rollouts(), st.sampled_from(["transition", "trajectory"]), st.integers(1, 12), st.integers(1, 12))
def test_every_token_that_is_left_carries_the_advantage_of_its_own_step(calls, level, prompt, response):
    limits = Limits(prompt, response)
    packed = pack(calls, level, limits)
    expected = slow_rows(calls, level, limits)
    assert [row.prompt_T.tolist() for row in packed.rows] == [row[0] for row in expected]
    assert [row.response_T.tolist() for row in packed.rows] == [[t for t, _ in row[1]] for row in expected]
    if not packed.rows:
        return
    advantages = advantages_of(packed, limits)
    for i, (_, tokens_and_advantages) in enumerate(expected):
        wanted = [0.0 if advantage is None else advantage for _, advantage in tokens_and_advantages]
        assert advantages[i, : len(wanted)].tolist() == wanted
        assert not advantages[i, len(wanted) :].any()


@settings(max_examples=100, deadline=None)
@given(rollouts(), st.sampled_from(["transition", "trajectory"]), st.integers(1, 8))
def test_every_step_is_in_one_row_or_among_the_skipped(calls, level, size):
    packed = pack(calls, level, Limits(size, size))
    kept = [step for row in packed.rows for step in row.step_indices]
    lost = [int(item.id.rpartition("#")[2]) for item in packed.skipped]
    assert sorted(kept + lost) == list(range(len(calls)))


def test_advantages_are_spread_over_each_run_of_the_mask():
    rewards = torch.tensor([[0.0, 2.0, 0.0, 0.0, -1.0, 0.0]])
    mask = torch.tensor([[1, 1, 0, 1, 1, 0]])
    advantages, returns = spread_step_advantages(rewards, mask)
    assert advantages.tolist() == [[2.0, 2.0, 0.0, -1.0, -1.0, 0.0]]
    assert torch.equal(advantages, returns)


def test_a_float32_advantage_survives_to_the_last_bit():
    value = np.float32(0.1234567)
    packed = pack([call(0, [1], [2, 3, 4], value)], "transition")
    advantages = advantages_of(packed, WIDE)
    assert advantages.dtype == torch.float32
    assert advantages[0, :3].numpy().tolist() == [value] * 3


@pytest.mark.parametrize("level", ["transition", "trajectory"])
def test_padding_is_left_of_prompts_and_right_of_responses(level):
    packed = pack([call(0, [5, 6], [7])], level)
    batch = build_batch(
        packed.rows,
        Limits(4, 3),
        data_ids=["d"],
        rollout_ids=["r"],
        pad_token_id=0,
        device=torch.device("cpu"),
    )
    assert batch.batch["input_ids"].tolist() == [[0, 0, 5, 6, 7, 0, 0]]
    assert batch.batch["attention_mask"].tolist() == [[0, 0, 1, 1, 1, 0, 0]]
    assert batch.batch["position_ids"].tolist() == [[0, 0, 0, 1, 2, 2, 2]]
    assert batch.non_tensor_batch["turn_index_list"].tolist() == [0]
