"""Versions and variants of the GenAI family that have no capture: built from captures or by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from milegpo_plugin.trajectories import build_trajectories
from milegpo_plugin.types import SpanEvent


def game_of(truth):
    return [
        (step["assistant_text"], [(call["name"], call["arguments"]) for call in step["tool_calls"]])
        for step in truth["steps"]
    ]


def played(spans):
    (trajectory,) = build_trajectories(spans).trajectories
    return [
        (step.action.text, [(call.name, call.arguments) for call in step.action.tool_calls])
        for step in trajectory.steps
    ]


def renamed(span, **names):
    """The span with attributes under other names; a name of None drops the attribute."""
    attributes = {}
    for key, value in span.attributes.items():
        name = names.get(key.replace(".", "_"), key)
        if name is not None:
            attributes[name] = value
    return replace(span, attributes=attributes)


def test_version_2_of_pydantic_ai_has_other_keys_on_tool_spans(load_capture, truth):
    names = {"gen_ai_tool_call_arguments": "tool_arguments", "gen_ai_tool_call_result": "tool_response"}
    spans = [renamed(span, **names) for span in load_capture("pydantic_ai")]
    last_call = max(span.start_ns for span in spans if span.name.startswith("chat"))
    aborted = [span for span in spans if span.start_ns < last_call]
    assert played(spans) == game_of(truth)
    (trajectory,) = build_trajectories(aborted).trajectories
    assert trajectory.final_observation == truth["steps"][4]["tool_calls"][0]["result"]


@pytest.mark.parametrize(
    "name",
    [
        "traceloop_openai",
        "genai_openai",
        "openai_v2_latest",
        "pydantic_ai",
        "genai_langchain",
        "traceloop_langchain",
    ],
)
def test_spans_of_a_store_that_keeps_no_scope_are_read_all_the_same(name, load_capture, truth):
    spans = [replace(span, scope="", rollout_id="ro-1", attempt_id="at-1") for span in load_capture(name)]
    assert played(spans) == game_of(truth)


def test_content_only_on_the_log_event_of_the_call(load_capture, truth):
    names = dict.fromkeys(("gen_ai_input_messages", "gen_ai_output_messages"))
    assert played([renamed(span, **names) for span in load_capture("openai_v2_latest")]) == game_of(truth)


def test_without_its_log_records_an_event_based_call_has_no_content(load_capture):
    spans = [replace(span, logs=()) for span in load_capture("openai_v2_default")]
    for trajectory in build_trajectories(spans).trajectories:
        assert trajectory.steps[0].flags == ["missing_completion", "no_content"]


def test_structured_attributes_instead_of_json_strings(load_capture, truth):
    def structured(span):
        keys = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions")
        values = {key: json.loads(span.attributes[key]) for key in keys if key in span.attributes}
        return replace(span, attributes={**span.attributes, **values})

    assert played([structured(span) for span in load_capture("genai_openai__responses")]) == game_of(truth)


def test_messages_in_openai_s_own_form_under_the_genai_names(make_span):
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "door"}'}}
    history = [
        {"role": "developer", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
    ]
    first = make_span(
        "chat",
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(history),
            "gen_ai.output.messages": json.dumps(
                [{"role": "assistant", "content": None, "tool_calls": [call]}]
            ),
        },
    )
    assert played([first]) == [(None, [("look", {"at": "door"})])]
    (trajectory,) = build_trajectories([first]).trajectories
    assert trajectory.steps[0].observation == [{"role": "user", "content": "go"}]


def test_one_span_event_per_message(make_span):
    events = [
        SpanEvent("gen_ai.system.message", 1, {"content": "s"}),
        SpanEvent("gen_ai.user.message", 2, {"content": "go"}),
        SpanEvent(
            "gen_ai.choice", 3, {"index": 0, "finish_reason": "stop", "message": '{"content": "hello"}'}
        ),
    ]
    span = make_span("chat m", {"gen_ai.operation.name": "chat"}, events=events)
    (trajectory,) = build_trajectories([span]).trajectories
    assert played([span]) == [("hello", [])]
    assert trajectory.task_id == "go"


def test_tool_calls_beside_the_message_of_a_choice(make_span):
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    body = {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant"}, "tool_calls": calls}
    span = make_span(
        "openai.chat", {"gen_ai.operation.name": "chat"}, logs=(SpanEvent("gen_ai.choice", 1, {}, body),)
    )
    assert played([span]) == [(None, [("look", {})])]


def test_parts_that_only_their_key_tells(make_span):
    used = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"at": "door"}}}
    result = {"toolResult": {"toolUseId": "t1", "content": [{"text": "a door"}], "status": "success"}}
    asked = [{"role": "user", "content": [{"text": "go"}]}]
    history = [*asked, {"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]
    answers = [[used], [{"text": "done"}]]
    spans = [
        make_span(
            "chat m",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": json.dumps(messages),
                "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": answer}]),
            },
            at=10 * number,
        )
        for number, (messages, answer) in enumerate(zip((asked, history), answers, strict=True))
    ]
    assert played(spans) == [(None, [("look", {"at": "door"})]), ("done", [])]
    (trajectory,) = build_trajectories(spans).trajectories
    assert trajectory.steps[1].observation == [{"role": "tool", "content": "a door", "tool_call_id": "t1"}]


def test_input_on_the_span_and_output_on_its_event(load_capture, truth):
    names = {"gen_ai_output_messages": None}
    assert played([renamed(span, **names) for span in load_capture("openai_v2_latest")]) == game_of(truth)


def test_prompt_and_completion_events_of_the_oldest_version(make_span):
    events = [
        SpanEvent("gen_ai.content.prompt", 1, {"gen_ai.prompt": '[{"role": "user", "content": "go"}]'}),
        SpanEvent(
            "gen_ai.content.completion", 2, {"gen_ai.completion": '[{"role": "assistant", "content": "hi"}]'}
        ),
    ]
    assert played([make_span("chat m", {"gen_ai.operation.name": "chat"}, events=events)]) == [("hi", [])]


def test_reasoning_is_no_part_of_the_text(make_span):
    parts = [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "yes"}]
    span = make_span(
        "chat m",
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "go"}]}]',
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
        },
    )
    assert played([span]) == [("yes", [])]


def test_arguments_that_are_no_object_are_kept_and_flagged(make_call):
    span = make_call([("user", "go")], None, [("c1", "look", '{"at": "do')])
    (trajectory,) = build_trajectories([span]).trajectories
    (step,) = trajectory.steps
    assert step.action.tool_calls[0].arguments == {"unparsed_arguments": '{"at": "do'}
    assert step.flags == ["invalid_arguments"]


def as_022(span):
    """What Traceloop 0.22 would have written: no calls and no ids in the history, one call in the reply."""
    attributes = {}
    for key, value in span.attributes.items():
        head, _, rest = key.partition(".tool_calls.")
        if not rest and not key.endswith("tool_call_id"):
            attributes[key] = value
        elif key.startswith("gen_ai.completion.0.tool_calls.0.") and not key.endswith(".id"):
            attributes[f"{head}.function_call.{rest.partition('.')[2]}"] = value
    prompts = sum(key.startswith("gen_ai.prompt.") and key.endswith(".role") for key in attributes)
    for number in range(1, prompts):
        if f"gen_ai.prompt.{number}.content" not in attributes:
            attributes[f"gen_ai.prompt.{number}.content"] = attributes[f"gen_ai.prompt.{number - 1}.content"]
    return replace(span, attributes=attributes)


def test_traceloop_022_gives_what_it_wrote_and_flags_the_calls_it_lost(load_capture, truth):
    (trajectory,) = build_trajectories(
        [as_022(s) for s in load_capture("traceloop_openai_old033")]
    ).trajectories
    expected = [(text, calls[:1]) for text, calls in game_of(truth)]
    found = [(s.action.text, [(c.name, c.arguments) for c in s.action.tool_calls]) for s in trajectory.steps]
    assert found == expected
    assert ["missing_tool_calls" in step.flags for step in trajectory.steps] == [
        False,
        False,
        True,
        False,
        False,
        False,
    ]
    results = [
        call["result"] or f"Error: {call['error']}" for step in truth["steps"] for call in step["tool_calls"]
    ]
    assert [m["content"] for step in trajectory.steps[1:] for m in step.observation] == results


def test_calls_that_litellm_wrote_onto_a_foreign_parent_are_read_from_their_raw_children(load_capture, truth):
    spans = load_capture("litellm_otel__root_reqspan")
    (root,) = (span for span in spans if span.name == "rollout")
    requests = [span for span in spans if span.name == "litellm_request"]
    written = {}
    for request in requests[:-1]:
        written.update(request.attributes)
    raw = [replace(span, parent_id=root.span_id) for span in spans if span.name == "raw_gen_ai_request"]
    polluted = [replace(root, attributes=written), *raw]
    assert played(polluted) == game_of(truth)
    (trajectory,) = build_trajectories(polluted).trajectories
    assert all(step.response_token_ids for step in trajectory.steps)


def test_the_model_proxy_of_the_platform_alone_gives_steps_with_token_ids(load_capture, truth):
    """``raw_gen_ai_request`` under ``llm.hosted_vllm.``, with the ids in the resource."""
    ids = {"agentlightning.rollout_id": "ro-1", "agentlightning.attempt_id": "at-1"}

    def proxied(span):
        attributes = {k.replace("llm.openai.", "llm.hosted_vllm."): v for k, v in span.attributes.items()}
        return replace(span, attributes=attributes, resource=ids, rollout_id="ro-1", attempt_id="at-1")

    spans = [proxied(span) for span in load_capture("litellm_otel") if span.name == "raw_gen_ai_request"]
    assert played(spans) == game_of(truth)
    (trajectory,) = build_trajectories(spans).trajectories
    assert (trajectory.rollout_id, trajectory.attempt_id) == ("ro-1", "at-1")
    assert all(
        step.prompt_token_ids and step.response_token_ids and step.logprobs for step in trajectory.steps
    )


def test_a_different_number_of_token_ids_and_of_reported_tokens_is_flagged(load_capture):
    spans = [
        replace(span, attributes={**span.attributes, "gen_ai.usage.completion_tokens": 1})
        for span in load_capture("agentlightning03_agentops")
    ]
    (trajectory,) = build_trajectories(spans).trajectories
    assert all("token_count_mismatch" in step.flags for step in trajectory.steps)


def test_hidden_inputs_and_outputs_are_flagged(make_span):
    attributes = {
        "openinference.span.kind": "LLM",
        "input.value": "__REDACTED__",
        "output.value": "__REDACTED__",
        "llm.model_name": "m",
    }
    span = make_span("ChatCompletion", attributes, scope="openinference.instrumentation.openai")
    (trajectory,) = build_trajectories([span]).trajectories
    assert "redacted_content" in trajectory.steps[0].flags


def test_a_stream_without_a_response_id_is_flagged(load_capture):
    spans = [renamed(span, gen_ai_response_id=None) for span in load_capture("traceloop_openai__stream")]
    (trajectory,) = build_trajectories(spans).trajectories
    assert all("stream_without_ids" in step.flags for step in trajectory.steps)


def test_a_sub_agent_of_traceloop_is_named_by_its_association(load_capture):
    def of_sub_agent(span):
        key = "traceloop.association.properties.lc_agent_name"
        renamed_agent = {**span.attributes, key: "scout"}
        return replace(span, attributes=renamed_agent) if key in span.attributes else span

    spans = [of_sub_agent(span) for span in load_capture("traceloop_langchain")]
    (trajectory,) = build_trajectories(spans).trajectories
    assert {step.agent for step in trajectory.steps} == {"scout"}


def test_pending_spans_of_logfire_are_no_calls(load_capture, truth):
    spans = load_capture("pydantic_ai")
    pending = [
        replace(
            span,
            span_id=f"{number:016x}",
            parent_id=span.span_id,
            end_ns=span.start_ns,
            attributes={**span.attributes, "logfire.span_type": "pending_span"},
        )
        for number, span in enumerate(spans)
    ]
    assert played([*spans, *pending]) == game_of(truth)


def test_an_unknown_span_is_counted_and_left_alone(load_capture, make_span):
    spans = load_capture("pydantic_ai")
    stranger = make_span("GET /", {"http.method": "GET"}, at=-100)
    result = build_trajectories([*spans, replace(stranger, trace_id=spans[0].trace_id)])
    assert result.counts["unknown_spans"] == 1
    assert result.trajectories == build_trajectories(spans).trajectories
