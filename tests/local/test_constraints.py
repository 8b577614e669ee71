from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milegpo_plugin.local.chat import parse_reply
from milegpo_plugin.local.constraints import TokenMatcher, single_token
from milegpo_plugin.local.distribution import pack_mask, unpack_masks
from milegpo_plugin.local.model import Policy, build_policy
from milegpo_plugin.local.protocol import RequestError
from milegpo_plugin.local.settings import ModelSettings


def walk(matcher: TokenMatcher, policy: Policy, seed: int, limit: int = 200) -> tuple[str, int]:
    """A uniformly random response, and how many of its tokens were a choice."""
    source = random.Random(seed)
    tokens, choices = matcher.forced_run(), 0
    while not matcher.finished and len(tokens) < limit:
        allowed = np.flatnonzero(unpack_masks([matcher.allowed()], policy.vocabulary)[0])
        token = int(source.choice(list(allowed)))
        matcher.accept(token)
        tokens += [token, *matcher.forced_run()]
        choices += 1
    return policy.tokenizer.decode(tokens, skip_special_tokens=True), choices


def called(text: str) -> tuple[str, dict[str, Any]]:
    (call,) = parse_reply(text).tool_calls
    return call["function"]["name"], json.loads(call["function"]["arguments"], strict=False)


@pytest.fixture(params=["own tokenizer", "byte tokenizer"])
def any_policy(request: pytest.FixtureRequest, policy: Policy, pretrained: Any) -> Policy:
    if request.param == "own tokenizer":
        return policy
    return build_policy(ModelSettings(path=str(pretrained), device="cpu"))


def test_every_choice_of_every_tool_can_be_reached_and_nothing_else(
    any_policy: Policy, make_tool: Callable[..., dict[str, Any]]
) -> None:
    tools = [
        make_tool("move", direction={"enum": ["north", "south", "northern"]}),
        make_tool("take", item={"enum": ["coin", "coins", 'Küche "x"\n']}, both={"type": "boolean"}),
        make_tool("look"),
    ]
    seen = {
        json.dumps(called(walk(any_policy.constraints.tool_call(tools), any_policy, s)[0]))
        for s in range(150)
    }
    directions = [("move", {"direction": word}) for word in ("north", "south", "northern")]
    items = [
        ("take", {"item": item, "both": flag})
        for item in ("coin", "coins", 'Küche "x"\n')
        for flag in (True, False)
    ]
    assert seen == {json.dumps(call) for call in [*directions, *items, ("look", {})]}


def test_a_direction_is_one_decision(policy: Policy, act: Callable[..., Any]) -> None:
    commands = ("move north", "move south", "move east")
    _, choices = walk(policy.constraints.tool_call(act(*commands)), policy, seed=1)
    assert choices == 1


def test_a_call_without_a_choice_is_one_forced_run(policy: Policy, act: Callable[..., Any]) -> None:
    matcher = policy.constraints.tool_call(act("take coin"))
    text = policy.tokenizer.decode(matcher.forced_run(), skip_special_tokens=True)
    assert matcher.finished
    assert called(text) == ("act", {"command": "take coin"})


@pytest.mark.parametrize("seed", range(12))
def test_free_values_match_their_schema(
    any_policy: Policy, make_tool: Callable[..., dict[str, Any]], seed: int
) -> None:
    tools = [
        make_tool(
            "say",
            ["query", "count"],
            query={"type": "string", "maxLength": 6},
            count={"type": "integer", "minimum": 0, "maximum": 99},
            mood={"$ref": "#/$defs/Mood"},
        )
    ]
    tools[0]["function"]["parameters"]["$defs"] = {"Mood": {"enum": ["glad", "sad"]}}
    name, arguments = called(walk(any_policy.constraints.tool_call(tools), any_policy, seed)[0])
    assert name == "say"
    assert len(arguments["query"]) <= 6
    assert 0 <= arguments["count"] <= 99
    assert arguments.get("mood") in (None, "glad", "sad")


def test_text_that_a_free_object_forces_is_fed_without_a_choice(
    any_policy: Policy, make_tool: Callable[..., dict[str, Any]]
) -> None:
    nested = {
        "type": "object",
        "properties": {"a_rather_long_key": {"enum": [1, 2]}},
        "required": ["a_rather_long_key"],
    }
    matcher = any_policy.constraints.tool_call([make_tool("put", where=nested)])
    text, choices = walk(matcher, any_policy, seed=0)
    assert called(text)[1]["where"]["a_rather_long_key"] in (1, 2)
    assert choices < 8


@settings(max_examples=40, deadline=None)
@given(
    choices=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), min_size=1, max_size=6
    ),
    seed=st.integers(0, 1000),
)
def test_a_choice_is_always_one_of_the_texts(policy: Policy, choices: list[str], seed: int) -> None:
    text, _ = walk(policy.constraints.choice(choices), policy, seed)
    assert text in choices


def test_json_and_regex_constraints_hold(any_policy: Policy) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
    text, _ = walk(any_policy.constraints.json_schema(schema), any_policy, seed=3)
    assert json.loads(text)["a"] in (1, 2)
    text, _ = walk(any_policy.constraints.regex("[0-9]{3}-[ab]"), any_policy, seed=3)
    assert len(text) == 5
    assert text[:3].isdigit()


def test_a_special_token_never_stands_for_its_text(policy: Policy) -> None:
    allowed = unpack_masks([policy.constraints.regex(".*").allowed()], policy.vocabulary)[0]
    special = [policy.tokenizer.convert_tokens_to_ids(text) for text in ("<|user|>", "<|pad|>")]
    assert not allowed[special].any()
    assert allowed[policy.tokenizer.eos_token_id]


def test_an_impossible_pattern_is_refused_by_name(policy: Policy) -> None:
    with pytest.raises(RequestError, match="the regex constraint cannot be compiled"):
        policy.constraints.regex("(")


@given(st.lists(st.booleans(), min_size=1, max_size=100))
def test_masks_survive_packing(allowed: list[bool]) -> None:
    mask = pack_mask(np.array(allowed))
    assert unpack_masks([mask], len(allowed))[0].tolist() == allowed
    only = allowed.index(True) if sum(allowed) == 1 else None
    assert single_token(mask) == only
