"""Langfuse: exports of a trace, of observations and of scores, and spans of its SDK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from milegpo_plugin.adapters import SpanTree, dialect_of
from milegpo_plugin.spans import read_document, read_spans
from milegpo_plugin.trajectories import ReconstructOptions, build_trajectories

IMPORTS = Path(__file__).parents[1] / "data" / "imports"
EXPORTS = {
    "API": ["langfuse_trace.json"],
    "blob storage": ["langfuse_observations.jsonl", "langfuse_scores.jsonl"],
}


def load(names):
    problems: list[Any] = []
    spans = read_spans([IMPORTS / name for name in names], on_problem=problems.append)
    assert not problems
    return spans


@pytest.fixture(params=EXPORTS, ids=str)
def rollout(request):
    (trajectory,) = build_trajectories(load(EXPORTS[request.param])).trajectories
    return trajectory


@pytest.fixture
def trace():
    return json.loads((IMPORTS / "langfuse_trace.json").read_text(encoding="utf-8"))


@pytest.fixture
def read():
    """Langfuse objects → the one trajectory that they are."""

    def rebuild(*documents, **options):
        spans = [span for document in documents for span in read_document(document)]
        (trajectory,) = build_trajectories(spans, ReconstructOptions(**options)).trajectories
        return trajectory

    return rebuild


def test_actions_are_those_of_the_game(rollout, truth):
    assert [
        (step.action.text, [(call.name, call.arguments) for call in step.action.tool_calls])
        for step in rollout.steps
    ] == [
        (step["assistant_text"], [(call["name"], call["arguments"]) for call in step["tool_calls"]])
        for step in truth["steps"]
    ]


def test_tool_results_are_the_next_observation(rollout, truth):
    for step, after in zip(truth["steps"], rollout.steps[1:], strict=False):
        assert [message["content"] for message in after.observation] == [
            call["result"] or call["error"] for call in step["tool_calls"]
        ]


def test_the_agent_is_the_observation_of_its_type(rollout):
    assert {step.agent for step in rollout.steps} == {"player"}


def test_numeric_scores_are_rewards_of_what_they_score(rollout):
    assert rollout.reward == 1.0
    assert [step.reward for step in rollout.steps] == [None, None, None, 0.25, None, None]


def test_a_parent_that_was_not_exported_is_flagged(rollout):
    assert "orphan_parent" in rollout.flags


def test_a_session_is_the_rollout_and_metadata_may_name_the_task(trace, read):
    rollout = read(trace, task_attribute="langfuse.trace.metadata.task_id")
    assert (rollout.rollout_id, rollout.task_id) == ("run-17", "door-1")


def test_a_page_of_the_api_is_its_items(trace, read):
    page = {"data": trace["observations"], "meta": {"page": 1, "limit": 50, "totalPages": 1}}
    scores = {"data": [{**score, "traceId": trace["id"]} for score in trace["scores"]]}
    rollout = read(page, scores)
    assert len(rollout.steps) == 6
    assert rollout.reward == 1.0


def test_a_listed_trace_names_the_session_of_observations_that_are_exported_apart(trace, read):
    listed = {**trace, "observations": [item["id"] for item in trace["observations"]], "scores": []}
    assert read(listed, *trace["observations"]).rollout_id == "run-17"


def test_a_generation_without_input_and_output_is_a_step_that_says_so(trace, read):
    last = max(
        (item for item in trace["observations"] if item["type"] == "GENERATION"),
        key=lambda item: item["startTime"],
    )
    last["input"] = last["output"] = last["endTime"] = None
    flags = set(read(trace).steps[-1].flags)
    assert {"no_content", "missing_completion"} <= flags


def generation(**fields):
    return {
        "id": "g1",
        "traceId": "t1",
        "type": "GENERATION",
        "name": "answer",
        "startTime": "2026-11-30T09:00:00.000Z",
        "endTime": "2026-11-30T09:00:01.000Z",
        **fields,
    }


ASKED = [{"role": "user", "content": "open the door"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "take", "arguments": '{"item": "key"}'}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("open the door", ASKED, id="text"),
        pytest.param(
            '{"mode": "json"}', [{"role": "user", "content": '{"mode": "json"}'}], id="text of JSON"
        ),
        pytest.param(ASKED, ASKED, id="messages"),
        pytest.param({"messages": ASKED, "tools": []}, ASKED, id="request body"),
        pytest.param({"input": "open the door", "model": "m"}, ASKED, id="Responses body"),
        pytest.param(json.dumps(ASKED), ASKED, id="JSON of messages"),
        pytest.param(["open the door"], ASKED, id="list of texts"),
        pytest.param(
            [{"role": "user", "parts": [{"type": "text", "content": "open the door"}]}], ASKED, id="parts"
        ),
    ],
)
def test_input_of_any_integration_is_the_observation(given, expected, read):
    rollout = read(generation(input=given, output="yes"))
    assert rollout.steps[0].observation == expected
    assert rollout.steps[0].action.text == "yes"


@pytest.mark.parametrize(
    "output",
    [
        pytest.param({"role": "assistant", "content": None, "tool_calls": [CALL]}, id="message"),
        pytest.param([{"role": "assistant", "content": "", "tool_calls": [CALL]}], id="list"),
        pytest.param({"content": "", "additional_kwargs": {"tool_calls": [CALL]}}, id="LangChain, older"),
        pytest.param({"choices": [{"message": {"role": "assistant", "tool_calls": [CALL]}}]}, id="body"),
        pytest.param(
            {"type": "function_call", "call_id": "c1", "name": "take", "arguments": '{"item": "key"}'},
            id="Responses item",
        ),
    ],
)
def test_output_of_any_integration_is_the_action(output, read):
    action = read(generation(input=ASKED, output=output)).steps[0].action
    assert action.text is None
    assert [(call.id, call.name, call.arguments) for call in action.tool_calls] == [
        ("c1", "take", {"item": "key"})
    ]


def test_a_reply_body_brings_its_token_ids(read):
    body = {
        "id": "chatcmpl-1",
        "choices": [{"message": {"role": "assistant", "content": "yes"}, "token_ids": [4, 5]}],
        "prompt_token_ids": [1, 2, 3],
    }
    step = read(generation(input=ASKED, output=body)).steps[0]
    assert (step.prompt_token_ids, step.response_token_ids) == ([1, 2, 3], [4, 5])


def test_spans_of_the_sdk_are_read_as_they_come(make_span):
    agent = make_span("player", {"langfuse.observation.type": "agent", "session.id": "s"}, at=0, until=10)
    call = make_span(
        "chat",
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.input": json.dumps(ASKED),
            "langfuse.observation.output": json.dumps({"role": "assistant", "content": "yes"}),
            "langfuse.observation.usage_details": '{"input": 3, "output": 1}',
        },
        at=1,
        parent=agent,
    )
    read = dialect_of(call).read_call(call, SpanTree([agent, call]))
    assert (read.prompt_tokens, read.response_tokens) == (3, 1)
    (rollout,) = build_trajectories([agent, call]).trajectories
    assert (rollout.rollout_id, rollout.steps[0].agent) == ("s", "player")


def test_a_failed_tool_is_one_with_the_level_error_or_the_status_error(trace):
    spans = [span for span in read_document(trace) if dialect_of(span).name == "langfuse"]
    runs = [run for span in spans if (run := dialect_of(span).read_tool(span))]
    assert [run.name for run in runs if run.failed] == ["open_door"]
    assert all(run.call_id for run in runs)
