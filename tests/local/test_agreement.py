"""Sampler and learner give a fresh response the same probability, masks and temperature included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from milegpo_plugin.local.learner import Learner
from milegpo_plugin.local.model import Policy, build_policy
from milegpo_plugin.local.settings import LearnerSettings, ModelSettings
from milegpo_plugin.rows import RowBatch

ToRows = Callable[..., RowBatch]


def requests(act: Callable[..., Any], make_tool: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
    """Mixed lengths, tools, temperatures, nucleus and free text."""
    several = [
        make_tool("move", direction={"enum": ["north", "south", "east"]}),
        make_tool("take", item={"enum": ["coin", "coins"]}),
        make_tool("say", query={"type": "string", "maxLength": 5}),
    ]
    found: list[dict[str, Any]] = []
    for index in range(8):
        messages = [{"role": "user", "content": "the kitchen door " * (1 + 7 * index % 30)}]
        temperature = (1.0, 0.5, 1.8)[index % 3]
        common = {"messages": messages, "temperature": temperature}
        found += [
            {**common, "tools": act("move north", "move east", "take coin"), "tool_choice": "required"},
            {**common, "tools": several, "tool_choice": "required"},
            {**common, "max_tokens": 6, "top_p": 0.8},
            {**common, "max_tokens": 4},
        ]
    return found


@pytest.fixture(params=["tiny", "pretrained", "lora"])
def any_policy(
    request: pytest.FixtureRequest, make_policy: Any, pretrained: Any, lora_policy: Callable[[], Policy]
) -> Policy:
    if request.param == "tiny":
        fresh: Policy = make_policy()
        return fresh
    if request.param == "lora":
        return lora_policy()
    return build_policy(ModelSettings(path=str(pretrained), device="cpu"))


@pytest.mark.parametrize("microbatch_tokens", [64, 20_000])
def test_the_importance_ratio_of_fresh_rows_is_one(
    any_policy: Policy,
    act: Callable[..., Any],
    make_tool: Callable[..., dict[str, Any]],
    to_rows: ToRows,
    microbatch_tokens: int,
) -> None:
    rows = to_rows(any_policy, requests(act, make_tool), lambda text: len(text) - 60.0)
    learner = Learner(any_policy, LearnerSettings(microbatch_tokens=microbatch_tokens))
    pairs = learner.score(rows)
    assert len(pairs) > 25
    for sampled, scored in pairs:
        assert np.abs(np.exp(scored - sampled) - 1).max() < 1e-3
    assert learner.update(rows)["ratio_max_dev"] < 1e-3


def test_without_the_mask_the_ratio_would_be_far_from_one(
    policy: Policy, act: Callable[..., Any], to_rows: ToRows
) -> None:
    tools = act("move north", "take coin")
    one = {"messages": [{"role": "user", "content": "x"}], "tools": tools, "tool_choice": "required"}
    rows = to_rows(policy, [one], lambda text: 1.0)
    record = policy.records.find(rows.rows[0].prompt_token_ids_T, rows.rows[0].response_token_ids_T)
    assert record is not None
    unmasked = type(record)((None,) * len(record.masks_T), record.logprobs_T, 1.0, 0)
    policy.records.add(rows.rows[0].prompt_token_ids_T, rows.rows[0].response_token_ids_T, unmasked)
    ((sampled, scored),) = Learner(policy).score(rows)
    assert np.abs(np.exp(scored - sampled) - 1).max() > 0.1
