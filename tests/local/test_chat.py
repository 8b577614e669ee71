from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milegpo_plugin.local.chat import parse_reply, render_prompt, tiny_template
from milegpo_plugin.local.model import Policy, build_policy
from milegpo_plugin.local.protocol import RequestError
from milegpo_plugin.local.settings import ModelSettings

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "act", "arguments": '{"command": "move north"}'},
}
TURN = [
    {"role": "system", "content": "Act."},
    {"role": "user", "content": [{"type": "text", "text": "Take the coin."}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "You are in the pantry."},
]


def shown(policy: Policy, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None) -> str:
    return policy.tokenizer.decode(render_prompt(policy.tokenizer, messages, tools))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_the_own_tokenizer_keeps_every_text(policy: Policy, text: str) -> None:
    ids = policy.tokenizer(text, add_special_tokens=False).input_ids
    assert policy.tokenizer.decode(ids) == text


@pytest.mark.parametrize("word", ["kitchen", "North", "north", "coins", "direction"])
def test_a_word_of_the_samples_is_one_token_with_and_without_space(policy: Policy, word: str) -> None:
    for text in (word, " " + word):
        assert len(policy.tokenizer(text, add_special_tokens=False).input_ids) == 1


def test_the_tiny_template_is_compact_and_shows_tools_last(policy: Policy, act: Callable[..., Any]) -> None:
    assert shown(policy, TURN, act("move east", "take coin")) == (
        "<|system|>Act.<|user|>Take the coin."
        '<|assistant|><tool_call>{"name": "act", "arguments": {"command": "move north"}}</tool_call><|end|>'
        "<|tool|>You are in the pantry."
        "<|tools|>act(command: move east | take coin)<|assistant|>"
    )


def test_a_response_continues_its_prompt_token_by_token(policy: Policy) -> None:
    before = render_prompt(policy.tokenizer, TURN[:2], None)
    response = '<tool_call>{"name": "act", "arguments": {"command": "move north"}}</tool_call><|end|>'
    tokens = policy.tokenizer(response, add_special_tokens=False).input_ids
    after = render_prompt(policy.tokenizer, TURN[:3], None)
    assert after[: len(before) + len(tokens)] == before + tokens


def test_a_short_history_keeps_the_system_prompt_and_the_task(policy: Policy) -> None:
    tokenizer = build_policy(policy.settings, sample_texts=["x"]).tokenizer
    tokenizer.chat_template = tiny_template(1)
    text = tokenizer.decode(render_prompt(tokenizer, TURN, None))
    assert text == "<|system|>Act.<|user|>Take the coin.<|tool|>You are in the pantry.<|assistant|>"


def test_a_model_without_a_tool_template_gets_chatml(pretrained: Any, act: Callable[..., Any]) -> None:
    policy = build_policy(ModelSettings(path=str(pretrained), device="cpu"))
    text = shown(policy, TURN, act("move east"))
    assert text.startswith("<|im_start|>system\nAct.\n\n# Tools")
    assert (
        '<tool_call>\n{"name": "act", "arguments": {"command": "move north"}}\n</tool_call><|im_end|>' in text
    )
    assert "<tool_response>\nYou are in the pantry.\n</tool_response>" in text
    assert text.endswith("<|im_start|>assistant\n")


def test_content_that_is_not_text_is_refused(policy: Policy) -> None:
    image = [{"type": "image_url", "image_url": {"url": "x"}}]
    with pytest.raises(RequestError, match="message content must be text"):
        shown(policy, [{"role": "user", "content": image}])


def test_text_around_a_tool_call_is_kept() -> None:
    reply = parse_reply('I go. <tool_call>\n{"name": "act", "arguments": {"command": "x"}}\n</tool_call>')
    assert reply.content == "I go."
    (call,) = reply.tool_calls
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("act", {"command": "x"})


def test_several_calls_have_different_ids() -> None:
    one = '<tool_call>{"name": "a", "arguments": {}}</tool_call>'
    calls = parse_reply(one + one).tool_calls
    assert len({call["id"] for call in calls}) == 2


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>{broken</tool_call>",
        '<tool_call>{"arguments": {}}</tool_call>',
        "<tool_call>3</tool_call>",
    ],
)
def test_a_broken_call_stays_text(text: str) -> None:
    reply = parse_reply(text)
    assert (reply.content, reply.tool_calls) == (text, [])
