"""Every capture of the scripted game gives the steps of TRUTH.json, whatever wrote its spans."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

import pytest

from milegpo_plugin.adapters import SpanTree, dialect_of
from milegpo_plugin.flags import FLAGS
from milegpo_plugin.trajectories import ReconstructOptions, build_trajectories


@dataclass(frozen=True)
class Capture:
    """One capture and what its dialect can give.

    ``dialects`` are those that read a model call in it. ``player`` is the agent's name where the
    dialect has one; ``extra_steps`` are steps of other agents; ``first`` are the roles of what the
    player sees first. ``task`` is how the framework words the task, ``error`` the text with which it
    reports the failing tool, where these are not the game's own. ``answer_tool`` is the tool whose
    call is the final answer. ``flags`` are all flags of the rollout and its steps.
    """

    name: str
    dialects: str
    player: str | None = None
    extra_steps: int = 0
    first: tuple[str, ...] = ("user",)
    tokens: bool = False
    logprobs: bool = False
    task: str = "{task}"
    error: str | None = None
    answer_tool: str | None = None
    flags: frozenset[str] = frozenset()

    def actions(self, truth):
        for step in truth["steps"]:
            text, calls = step["assistant_text"], [(c["name"], c["arguments"]) for c in step["tool_calls"]]
            if step["final"] and self.answer_tool:
                text, calls = None, [(self.answer_tool, {"answer": text})]
            yield text, calls


def flagged(*names: str) -> frozenset[str]:
    return frozenset({"no_reward", "task_from_message", *names})


NO_IDS = flagged("no_token_ids")
SDK_ERROR = "An error occurred while running the tool. Please try again."
SMOLAGENTS = {"player": "player", "task": "New task:\n{task}", "answer_tool": "final_answer"}

CAPTURES = (
    Capture("agentlightning03_agentops", "agentops", tokens=True, flags=frozenset({"task_from_message"})),
    Capture(
        "agentlightning03_agentops.agl_spans.jsonl",
        "agentops",
        tokens=True,
        flags=frozenset({"task_from_message"}),
    ),
    Capture("openinference_openai", "openinference_openai", tokens=True, flags=flagged()),
    Capture("agentops_openai", "agentops", flags=NO_IDS),
    Capture("agentops_openai__trace", "agentops", flags=NO_IDS),
    Capture("openinference_openai__stream", "openinference_openai", tokens=True, flags=flagged()),
    Capture("openinference_openai__responses", "openinference_openai", flags=NO_IDS),
    Capture("traceloop_openai", "traceloop_openai", flags=NO_IDS),
    Capture("traceloop_openai__stream", "traceloop_openai", flags=NO_IDS),
    Capture("traceloop_openai__responses", "traceloop_openai", flags=NO_IDS),
    Capture("traceloop_openai_old033", "traceloop_old", flags=NO_IDS),
    Capture("traceloop_langchain", "traceloop_langchain", player="player", flags=NO_IDS),
    Capture("openai_v2_default", "openai_v2", flags=NO_IDS),
    Capture("openai_v2_latest", "openai_v2", flags=NO_IDS),
    Capture("genai_openai", "genai_openai", flags=NO_IDS),
    Capture("genai_openai__responses", "genai_openai", flags=NO_IDS),
    Capture("genai_langchain", "genai_langchain", player="player", flags=NO_IDS),
    Capture(
        "genai_openai_agents__plus_client",
        "genai_openai",
        player="player",
        error=SDK_ERROR,
        flags=NO_IDS,
    ),
    Capture("litellm_otel", "litellm_otel litellm_raw", tokens=True, flags=flagged()),
    Capture("litellm_otel__root_reqspan", "litellm_otel litellm_raw", tokens=True, flags=flagged()),
    Capture("pydantic_ai", "pydantic_ai", player="player", flags=NO_IDS),
    Capture("pydantic_ai__subagent", "pydantic_ai", player="player", extra_steps=2, flags=NO_IDS),
    Capture(
        "agentlightning03_otel__openinference",
        "openinference_openai",
        tokens=True,
        flags=frozenset({"task_from_message"}),
    ),
    Capture(
        "agentlightning03_otel__openinference.agl_spans.jsonl",
        "openinference_openai",
        tokens=True,
        flags=frozenset({"task_from_message"}),
    ),
    Capture(
        "openinference_langchain", "openinference_langchain", player="player", logprobs=True, flags=NO_IDS
    ),
    Capture(
        "openinference_langchain__plus_client",
        "openinference_langchain openinference_openai",
        player="player",
        tokens=True,
        flags=flagged(),
    ),
    Capture(
        "openinference_langchain__graph_plus_client",
        "openinference_langchain openinference_openai",
        tokens=True,
        flags=flagged(),
    ),
    Capture(
        "openinference_langchain__subagent",
        "openinference_langchain",
        player="player",
        extra_steps=2,
        logprobs=True,
        flags=NO_IDS,
    ),
    Capture(
        "openinference_openai_agents",
        "openinference_openai_agents",
        player="player",
        error=SDK_ERROR,
        flags=NO_IDS,
    ),
    Capture(
        "openinference_openai_agents__responses",
        "openinference_openai_agents",
        player="player",
        error=SDK_ERROR,
        flags=NO_IDS,
    ),
    Capture(
        "openinference_openai_agents__handoff",
        "openinference_openai_agents",
        player="player",
        extra_steps=1,
        first=("tool",),
        error=SDK_ERROR,
        flags=NO_IDS,
    ),
    Capture("openinference_litellm", "openinference_litellm", tokens=True, flags=NO_IDS),
    Capture("openinference_smolagents", "openinference_smolagents", **SMOLAGENTS, flags=NO_IDS),
    Capture(
        "openinference_smolagents__token_ids",
        "openinference_smolagents",
        **SMOLAGENTS,
        tokens=True,
        flags=flagged(),
    ),
    Capture(
        "openinference_smolagents__plus_client",
        "openinference_smolagents openinference_openai",
        **SMOLAGENTS,
        flags=NO_IDS,
    ),
    Capture(
        "openinference_mcp", "openinference_openai", error="Error executing tool open_door", flags=NO_IDS
    ),
    Capture("logfire_openai_agents", "logfire_openai_agents", player="player", error=SDK_ERROR, flags=NO_IDS),
    Capture(
        "logfire_openai_agents__responses",
        "logfire_openai_agents",
        player="player",
        error=SDK_ERROR,
        flags=NO_IDS,
    ),
    Capture("logfire_openai", "genai_any", error=SDK_ERROR, flags=NO_IDS),
    Capture("autogen__plus_openinference_client", "openinference_openai", player="player", flags=NO_IDS),
    Capture(
        "autogen__team_plus_client",
        "openinference_openai",
        player="player",
        extra_steps=2,
        first=("user", "user"),
        tokens=True,
        flags=flagged(),
    ),
)
EVERY_CAPTURE = pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture.name)


@pytest.fixture
def rollout(capture, load_capture):
    (trajectory,) = build_trajectories(load_capture(capture.name)).trajectories
    return trajectory


@pytest.fixture
def game(capture, rollout):
    """The steps of the player; a dialect that names no agent has no steps of others."""
    if not capture.extra_steps:
        return rollout.steps
    return [step for step in rollout.steps if step.agent == capture.player]


@EVERY_CAPTURE
def test_the_rollout_has_the_steps_of_the_game_and_no_others(capture, rollout, game, truth):
    assert len(game) == len(truth["steps"])
    assert len(rollout.steps) == len(game) + capture.extra_steps


@EVERY_CAPTURE
def test_each_action_has_the_text_and_the_tool_calls_of_the_game(capture, game, truth):
    found = [
        (step.action.text, [(call.name, call.arguments) for call in step.action.tool_calls]) for step in game
    ]
    assert found == list(capture.actions(truth))


@EVERY_CAPTURE
def test_the_results_of_the_tools_are_the_next_observation(capture, game, truth):
    for step, after in zip(truth["steps"], game[1:], strict=False):
        assert [message["role"] for message in after.observation] == ["tool"] * len(step["tool_calls"])
        for call, message in zip(step["tool_calls"], after.observation, strict=True):
            expected = call["result"] or capture.error or call["error"]
            assert expected in message["content"]


@EVERY_CAPTURE
def test_a_result_names_the_call_that_it_answers(game):
    for step, after in pairwise(game):
        asked = [call.id for call in step.action.tool_calls]
        assert [message.get("tool_call_id") for message in after.observation] == asked


@EVERY_CAPTURE
def test_the_first_observation_is_the_task_without_the_system_prompt(capture, game, rollout, truth):
    assert tuple(message["role"] for message in game[0].observation) == capture.first
    assert rollout.task_id == capture.task.format(task=truth["task"])


@EVERY_CAPTURE
def test_the_agent_is_named_where_the_dialect_names_it(capture, game):
    assert {step.agent for step in game} == {capture.player}


@EVERY_CAPTURE
def test_token_ids_are_those_of_the_capture(capture, rollout, traces):
    if not capture.tokens:
        assert {(step.prompt_token_ids, step.response_token_ids) for step in rollout.steps} == {(None, None)}
        assert {step.logprobs is not None for step in rollout.steps} == {capture.logprobs}
        return
    file = traces / (capture.name if capture.name.endswith(".jsonl") else f"{capture.name}.otlp.jsonl")
    text = file.read_text(encoding="utf-8").replace(" ", "")
    trainable = [step for step in rollout.steps if "no_token_ids" not in step.flags]
    assert trainable
    for step in trainable:
        assert is_written(step.prompt_token_ids, text)
        assert is_written(step.response_token_ids, text)
        assert len(step.logprobs) == len(step.response_token_ids)
        tokens = re.findall(r"\s*\S+", step.action.text or "")
        if step.action.tool_calls:
            tokens = tokens[:-1]  # the last one is glued to the markup of the tool call
        ids = [crc32(token.encode()) % 50000 for token in tokens]
        assert step.response_token_ids[: len(ids)] == ids


def is_written(token_ids: list[int], text: str) -> bool:
    """Whether the file has this list, as JSON or as OTLP integers."""
    plain = json.dumps(token_ids, separators=(",", ":"))
    otlp = ",".join(f'{{"intValue":"{token}"}}' for token in token_ids)
    return plain in text or otlp in text


@EVERY_CAPTURE
def test_the_model_calls_are_read_by_the_dialect_that_wrote_them(capture, load_capture):
    spans = load_capture(capture.name)
    tree = SpanTree(spans)
    owners = [(dialect_of(span), span) for span in spans]
    readers = {owner.name for owner, span in owners if owner and owner.read_call(span, tree)}
    assert readers == set(capture.dialects.split())


@EVERY_CAPTURE
def test_what_the_dialect_cannot_give_is_flagged(capture, rollout):
    found = set(rollout.flags).union(*(step.flags for step in rollout.steps))
    assert found == capture.flags
    assert found <= FLAGS.keys()


@EVERY_CAPTURE
def test_the_result_does_not_depend_on_the_order_of_the_spans(capture, load_capture):
    spans = load_capture(capture.name)
    expected = build_trajectories(spans)
    for order in (spans[::-1], spans[1::2] + spans[::2]):
        assert build_trajectories(order) == expected


def test_the_filter_leaves_the_named_agent(load_capture, truth):
    options = ReconstructOptions(agents=["player"])
    result = build_trajectories(load_capture("pydantic_ai__subagent"), options)
    (trajectory,) = result.trajectories
    assert len(trajectory.steps) == len(truth["steps"])
    assert result.counts["filtered_calls"] == 2
