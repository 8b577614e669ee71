"""One model call that several instrumentations saw is one step; two real calls stay two."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from milegpo_plugin.trajectories import build_trajectories

ASK = [("system", "play"), ("user", "go")]
LOOK = [("call_1", "look", {})]


@pytest.fixture
def client_span(make_span):
    """The client's own view of a call: an OpenInference span with token ids."""

    def make(text, calls=(), *, response_id="r1", **fields):
        message = {
            "role": "assistant",
            "content": text,
            "tool_calls": [
                {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
                for i, n, a in calls
            ],
        }
        reply = {
            "id": response_id,
            "prompt_token_ids": [1, 2],
            "choices": [{"message": message, "finish_reason": "stop", "token_ids": [3, 4]}],
        }
        request = {"messages": [{"role": role, "content": content} for role, content in ASK]}
        attributes = {
            "openinference.span.kind": "LLM",
            "input.value": json.dumps(request),
            "output.value": json.dumps(reply),
        }
        return make_span("ChatCompletion", attributes, scope="openinference.instrumentation.openai", **fields)

    return make


def only_step(spans):
    (trajectory,) = build_trajectories(spans).trajectories
    (step,) = trajectory.steps
    return step


def steps(spans):
    return [step for trajectory in build_trajectories(spans).trajectories for step in trajectory.steps]


def test_a_nested_copy_is_the_same_call_and_gives_its_token_ids(make_span, make_call, client_span):
    agent = make_span(
        "invoke_agent a", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}, until=100
    )
    outer = make_call(ASK, "hello", at=10, until=50, parent=agent)
    inner = client_span("hello", at=20, until=40, parent=outer, response_id="unknown to the framework")
    step = only_step([agent, outer, inner])
    assert (step.agent, step.prompt_token_ids, step.response_token_ids) == ("a", [1, 2], [3, 4])
    assert step.action.text == "hello"
    assert step.span_id == inner.span_id


def test_a_copy_in_another_trace_is_found_by_its_response_id(make_call, client_span):
    framework = make_call(ASK, "hello", at=10, until=50, attributes={"gen_ai.response.id": "r1"})
    assert only_step([framework, client_span("hello", at=20, until=40)]).response_token_ids == [3, 4]


def test_a_copy_without_response_id_is_found_by_its_tool_call_ids(make_call, client_span):
    framework = make_call(ASK, None, LOOK, at=10, until=50)
    assert only_step([framework, client_span(None, LOOK, at=20, until=40)]).response_token_ids == [3, 4]


def test_a_copy_without_any_id_is_found_by_its_text_within_the_other_s_time(make_call, client_span):
    framework = make_call(ASK, "hello", at=10, until=50)
    assert only_step([framework, client_span("hello", at=20, until=40, response_id=None)]).response_token_ids


def test_equal_calls_that_do_not_overlap_are_two(make_call, client_span):
    framework = make_call(ASK, "hello", at=10, until=50)
    later = client_span("hello", at=60, until=70, response_id=None)
    assert len(steps([framework, later])) == 2


def test_equal_texts_with_different_ids_are_two_calls(make_call, client_span):
    framework = make_call(ASK, "hello", at=10, until=50, attributes={"gen_ai.response.id": "r0"})
    assert len(steps([framework, client_span("hello", at=20, until=40)])) == 2


def test_equal_calls_at_once_are_paired_one_to_one(make_call, client_span):
    outer = [make_call(ASK, "hello", at=10 + n, until=50 + n) for n in range(3)]
    inner = [client_span("hello", at=20 + n, until=40 + n, response_id=None) for n in range(3)]
    found = steps(outer + inner)
    assert len(found) == 3
    assert all(step.response_token_ids for step in found)


def test_equal_calls_of_one_dialect_are_never_copies(make_call):
    same = {"gen_ai.response.id": "every reply has this id"}
    assert len(steps([make_call(ASK, "hello", at=n, until=50, attributes=same) for n in range(3)])) == 3


def test_a_span_that_its_children_wrote_on_is_no_call(make_call, client_span):
    polluted = make_call(ASK, "second", name="my root", until=100)
    first = client_span("first", at=10, until=20, parent=polluted, response_id="r1")
    second = client_span("second", at=30, until=40, parent=polluted, response_id="r2")
    assert [step.action.text for step in steps([polluted, first, second])] == ["first", "second"]


def test_a_retry_inside_a_call_is_not_a_second_call(make_call, client_span):
    outer = make_call(ASK, "hello", at=10, until=90)
    failed = replace(client_span("x", at=20, until=30, parent=outer), status="ERROR")
    failed = replace(failed, attributes={"openinference.span.kind": "LLM"})
    good = client_span("hello", at=40, until=80, parent=outer)
    assert only_step([outer, failed, good]).response_token_ids == [3, 4]


def test_a_call_below_a_tool_of_a_call_is_another_call(make_span, make_call):
    outer = make_call(ASK, None, LOOK, at=10, until=90)
    tool = make_span(
        "execute_tool look", {"gen_ai.operation.name": "execute_tool"}, at=20, until=80, parent=outer
    )
    inner = make_call([("user", "sub")], "done", at=30, until=70, parent=tool)
    assert len(steps([outer, tool, inner])) == 2


def test_a_batch_that_was_sent_twice_counts_once(load_capture):
    spans = load_capture("traceloop_openai")
    result = build_trajectories([*spans, *spans[::-1]])
    assert result.trajectories == build_trajectories(spans).trajectories
    assert result.counts["duplicate_spans"] == len(spans)


def test_of_two_copies_of_a_span_the_fuller_one_counts(load_capture):
    spans = load_capture("traceloop_openai")
    thin = [replace(span, attributes=dict(list(span.attributes.items())[:3])) for span in spans]
    assert build_trajectories([*thin, *spans]).trajectories == build_trajectories(spans).trajectories


def test_the_proxy_s_spans_join_those_of_the_agent(load_capture):
    """Agent Lightning keeps the agent's own spans and those of its model proxy under one rollout."""
    agent = load_capture("agentlightning03_agentops.agl_spans.jsonl")
    replies = [span for span in agent if span.name == "openai.chat.completion"]
    proxy = [
        replace(
            span,
            trace_id=f"{number:032x}",
            span_id=f"{number:016x}",
            parent_id=None,
            name="raw_gen_ai_request",
            attributes={
                "llm.hosted_vllm.id": span.attributes["gen_ai.response.id"],
                "llm.hosted_vllm.messages": repr([{"role": "user", "content": "x"}]),
                "llm.hosted_vllm.choices": repr([{"message": {"role": "assistant", "content": "y"}}]),
            },
        )
        for number, span in enumerate(replies, start=1)
    ]
    joined = build_trajectories([*agent, *proxy])
    assert joined.counts["duplicate_calls"] == len(replies)
    assert joined.trajectories == build_trajectories(agent).trajectories
