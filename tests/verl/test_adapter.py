"""Triplets from real captures of the store, whatever instrumentation wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agentlightning.adapter import TracerTraceToTriplet
from agentlightning.types import Span

from milegpo_plugin.agl.verl.triplets import TripletAdapter, triplets_of
from milegpo_plugin.types import Step, Trajectory

TRACES = Path(__file__).parents[1] / "data" / "traces"


def capture(name: str) -> list[Span]:
    lines = (TRACES / name).read_text(encoding="utf-8").splitlines()
    return [Span.model_validate(json.loads(line)) for line in lines]


AGENTOPS = "agentlightning03_agentops.agl_spans.jsonl"
OPENINFERENCE = "agentlightning03_otel__openinference.agl_spans.jsonl"


@pytest.mark.parametrize("name", [AGENTOPS, OPENINFERENCE])
def test_every_instrumentation_yields_a_triplet_per_model_call(name):
    triplets = TripletAdapter().adapt(capture(name))
    assert [(len(t.prompt["token_ids"]), len(t.response["token_ids"])) for t in triplets] == [
        (25, 8),
        (49, 5),
        (71, 18),
        (121, 6),
        (135, 13),
        (159, 17),
    ]
    assert triplets[-1].reward == 1.0
    assert [t.metadata["step_index"] for t in triplets] == [0, 1, 2, 3, 4, 5]


def test_the_built_in_adapter_finds_nothing_in_openinference_spans():
    assert TracerTraceToTriplet().adapt(capture(OPENINFERENCE)) == []


def test_no_spans_give_no_triplets():
    assert TripletAdapter().adapt([]) == []


def proxied(spans: list[Span]) -> list[Span]:
    """The capture as if only the platform's proxy had seen token ids."""
    found = []
    for span in spans:
        ids = span.attributes.pop("prompt_token_ids", None)
        reply = span.attributes.pop("response_token_ids", None)
        found.append(span)
        if ids is None:
            continue
        answer = {"role": "assistant", "content": span.attributes.get("gen_ai.completion.0.content")}
        wire = {
            "llm.hosted_vllm.id": span.attributes["gen_ai.response.id"],
            "llm.hosted_vllm.prompt_token_ids": repr(list(ids)),
            "llm.hosted_vllm.choices": repr([{"index": 0, "message": answer, "token_ids": list(reply)}]),
        }
        found.append(
            Span.from_attributes(
                attributes=wire,
                name="raw_gen_ai_request",
                rollout_id=span.rollout_id,
                attempt_id=span.attempt_id,
                sequence_id=span.sequence_id,
                start_time=span.start_time,
                end_time=span.end_time,
            )
        )
    return found


def test_token_ids_of_the_proxy_join_the_agents_spans_by_response_id():
    expected = TripletAdapter().adapt(capture(AGENTOPS))
    joined = TripletAdapter().adapt(proxied(capture(AGENTOPS)))
    assert [t.prompt["token_ids"] for t in joined] == [t.prompt["token_ids"] for t in expected]
    assert [t.response["token_ids"] for t in joined] == [t.response["token_ids"] for t in expected]
    assert joined[-1].reward == 1.0


def test_the_outcome_is_on_the_last_call_that_has_token_ids():
    steps = [Step(prompt_token_ids=[1], response_token_ids=[2]), Step()]
    (triplet,) = triplets_of(Trajectory(task_id="t", rollout_id="r", reward=1.0, steps=steps))
    assert triplet.reward == 1.0


def test_calls_without_token_ids_are_counted_in_a_warning(caplog):
    spans = capture(AGENTOPS)
    calls = [span for span in spans if span.attributes.pop("prompt_token_ids", None)]
    assert TripletAdapter().adapt(spans) == []
    assert f"{len(calls)} of {len(calls)} model calls have no token ids" in caplog.text
