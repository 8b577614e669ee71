"""Numbers of a response do not depend on its neighbours or on the order of requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from milegpo_plugin.local.model import Policy

Sample = Callable[..., Any]


def ask(text: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **fields}


@pytest.fixture
def mixed(act: Callable[..., Any]) -> list[dict[str, Any]]:
    """Short and long prompts, tool calls and free text, several temperatures."""
    commands = act("move north", "move south", "take coin", "take coins")
    return [
        ask("kitchen", tools=commands, tool_choice="required"),
        ask("You are in the kitchen. " * 12, tools=commands, tool_choice="required", temperature=1.7),
        ask("north", max_tokens=9),
        ask("the pantry " * 20, max_tokens=5, temperature=0.6, top_p=0.7),
        ask("say", structured_outputs={"choice": ["move north", "take coins", "x"]}),
        ask("east", max_tokens=7, temperature=0),
    ]


def test_a_request_has_the_same_numbers_alone_and_in_a_batch(
    policy: Policy, mixed: list[dict[str, Any]], sample: Sample
) -> None:
    policy.records.clear()
    together = sample(policy, mixed)
    policy.records.clear()
    for request, in_batch in zip(mixed, together, strict=True):
        (alone,) = sample(policy, [request])
        assert alone.tokens == in_batch.tokens
        assert alone.logprobs == pytest.approx(in_batch.logprobs, abs=1e-4)


def test_equal_prompts_draw_from_different_streams_that_repeat(policy: Policy, sample: Sample) -> None:
    requests = [ask("kitchen", max_tokens=12)] * 4
    policy.records.clear()
    first = [done.tokens for done in sample(policy, requests)]
    policy.records.clear()
    again = [sample(policy, [request])[0].tokens for request in requests]
    assert first == again
    assert len({tuple(tokens) for tokens in first}) == 4


def test_other_requests_do_not_shift_the_stream_of_a_prompt(policy: Policy, sample: Sample) -> None:
    policy.records.clear()
    (alone,) = sample(policy, [ask("kitchen", max_tokens=12)])
    policy.records.clear()
    *_, last = sample(policy, [ask("north"), ask("east"), ask("kitchen", max_tokens=12)])
    assert alone.tokens == last.tokens


def test_a_seed_fixes_the_response(policy: Policy, sample: Sample) -> None:
    one, two, three = sample(policy, [ask("kitchen", max_tokens=12, seed=s) for s in (5, 5, 6)])
    assert one.tokens == two.tokens
    assert one.tokens != three.tokens


def test_temperature_zero_takes_the_most_likely_token(policy: Policy, sample: Sample) -> None:
    (greedy,) = sample(policy, [ask("kitchen", max_tokens=6, temperature=0, top_logprobs=3)])
    for token, logprob, alternatives in zip(greedy.tokens, greedy.logprobs, greedy.alternatives, strict=True):
        assert alternatives[0] == (token, pytest.approx(logprob))


def test_forced_tokens_have_probability_one_and_a_mask_of_one(
    policy: Policy, act: Callable[..., Any], sample: Sample
) -> None:
    (done,) = sample(policy, [ask("x", tools=act("move north", "take coin"), tool_choice="required")])
    free = done.record(1.0).free_T()
    assert free.sum() == 1
    assert np.array(done.logprobs)[~free].tolist() == [0.0] * int((~free).sum())
    assert np.array(done.logprobs)[free][0] < 0


def test_a_tool_call_with_one_decision_costs_one_forward_pass(
    policy: Policy, act: Callable[..., Any], sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []
    original = policy.logits

    def counted(ids: Any, attended: Any, **options: Any) -> Any:
        passes.append(ids.shape[0])
        return original(ids, attended, **options)

    monkeypatch.setattr(policy, "logits", counted)
    request = ask("kitchen", tools=act("move north", "take coin"), tool_choice="required")
    sample(policy, [request] * 4)
    assert passes == [4]


def test_draws_follow_the_reported_probabilities(
    policy: Policy, act: Callable[..., Any], sample: Sample
) -> None:
    tools = act("move north", "take coin")
    requests = [ask("kitchen", tools=tools, tool_choice="required", seed=s) for s in range(400)]
    drawn = sample(policy, requests)
    probability = {tuple(done.tokens): float(np.exp(sum(done.logprobs))) for done in drawn}
    assert sum(probability.values()) == pytest.approx(1.0, abs=1e-4)
    for tokens, expected in probability.items():
        share = np.mean([tuple(done.tokens) == tokens for done in drawn])
        assert share == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 400))
