"""Events of Agent Lightning 1.0's gateway: a real capture of nine rollouts, and events made by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from milegpo_plugin.files import read_input
from milegpo_plugin.spans import read_document
from milegpo_plugin.trajectories import Reconstruction, ReconstructOptions, build_trajectories
from milegpo_plugin.types import Span, Trajectory

CAPTURE = "agentlightning10_gateway.rollouts.jsonl"
WALKS = {
    "12377c": (["east", "east", "east"], 1.0),
    "7cf96c": (["east", "west", "east", "east", "east"], 1.0),
    "8bc964": (["west", "west", "west", "west", "east"], 0.0),
    "da099a": (["east", "west", "east", "west", "east"], 0.0),
    "e0d63d": (["east", "east", "east"], 1.0),
    "40a58d": (["west", "east", "east", "west"], 0.0),
    "8b9d77": (["west", "east", "east", "east"], 1.0),
    "2dbe9c": (["west", "east", "east", "east"], 1.0),
    "0718cb": (["east"], None),
}
"""What the agent did in the capture, and its outcome, by the start of the rollout's id."""

ROOMS = ("hall", "kitchen", "cellar", "attic")


@pytest.fixture(scope="module")
def rollouts(traces: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (traces / CAPTURE).read_text(encoding="utf-8").splitlines()]


def rebuild(documents: Sequence[Any], **options: Any) -> Reconstruction:
    spans = [item for item in read_document(list(documents)) if isinstance(item, Span)]
    return build_trajectories(spans, ReconstructOptions(**options))


def event(kind: str, data: dict[str, Any], *, at: float, rollout: str = "r") -> dict[str, Any]:
    return {"event_type": kind, "rollout_id": rollout, "attempt_id": "0", "timestamp": at, "data": data}


def call(
    text: str, reply: str, *, at: float, history: Sequence[tuple[str, str]] = (), **data: Any
) -> dict[str, Any]:
    """A forwarded call that took half a second and ended at ``at``."""
    turns = [
        message
        for said, answer in history
        for message in ({"role": "user", "content": said}, {"role": "assistant", "content": answer})
    ]
    request = {"model": "m", "messages": [*turns, {"role": "user", "content": text}]}
    response = {
        "id": f"reply-{at}",
        "model": "m",
        "prompt_token_ids": [1, 2],
        "choices": [{"message": {"role": "assistant", "content": reply}, "token_ids": [3]}],
    }
    fields = {
        "request": request,
        "response": response,
        "latency_ms": 500.0,
        "status": "ok",
        "http_status": 200,
    }
    return event("model_request", {**fields, **data}, at=at)


def two_steps() -> list[dict[str, Any]]:
    return [call("hall", "go", at=10), call("kitchen", "stop", at=20, history=[("hall", "go")])]


def only(documents: Sequence[Any], **options: Any) -> Trajectory:
    (trajectory,) = rebuild(documents, **options).trajectories
    return trajectory


def rooms_of(walk: Sequence[str]) -> list[str]:
    place, rooms = 0, []
    for direction in walk:
        rooms.append(ROOMS[place])
        place = max(0, min(len(ROOMS) - 1, place + (1 if direction == "east" else -1)))
    return rooms


def test_every_rollout_of_the_capture_has_its_steps_in_order(rollouts: list[dict[str, Any]]) -> None:
    found = {t.rollout_id[:6]: t for t in rebuild(rollouts).trajectories}
    assert found.keys() == WALKS.keys()
    for name, (walk, reward) in WALKS.items():
        steps = found[name].steps
        assert [step.action.tool_calls[0].arguments for step in steps] == [{"direction": d} for d in walk]
        shown = [step.observation[-1]["content"] for step in steps]
        assert [room in text for room, text in zip(rooms_of(walk), shown, strict=True)] == [True] * len(walk)
        assert found[name].reward == reward


def test_token_ids_and_logprobs_are_those_of_the_capture(rollouts: list[dict[str, Any]]) -> None:
    found = {t.rollout_id: t for t in rebuild(rollouts).trajectories}
    for rollout in rollouts:
        steps = found[rollout["rollout_id"]].steps
        assert [s.prompt_token_ids for s in steps] == [t["prompt"]["token_ids"] for t in rollout["triplets"]]
        assert [s.response_token_ids for s in steps] == [
            t["response"]["token_ids"] for t in rollout["triplets"]
        ]
        assert [s.logprobs for s in steps] == [t["response"]["log_probs"] for t in rollout["triplets"]]


def test_a_failed_rollout_is_flagged_and_no_other(rollouts: list[dict[str, Any]]) -> None:
    failed = [t.rollout_id[:6] for t in rebuild(rollouts).trajectories if "failed" in t.flags]
    assert failed == ["0718cb"]


def test_events_alone_give_the_same_steps_in_any_order(rollouts: list[dict[str, Any]]) -> None:
    events = [item for rollout in rollouts[:8] for item in rollout["events"]]
    random.Random(4).shuffle(events)
    ordered = {t.rollout_id: t.steps for t in rebuild(rollouts[:8]).trajectories}
    assert {t.rollout_id: t.steps for t in rebuild(events).trajectories} == ordered


def test_a_posted_event_file_is_read_by_the_commands(rollouts: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_text(json.dumps([item for r in rollouts for item in r["events"]]), encoding="utf-8")
    read = read_input([file], options=ReconstructOptions())
    assert len(read.trajectories) == 9
    assert read.skipped == []


def test_the_data_id_of_a_dumped_rollout_names_its_task(rollouts: list[dict[str, Any]]) -> None:
    tasks = {
        t.rollout_id: t.task_id
        for t in rebuild(rollouts, task_attribute="agentlightning.data_id").trajectories
    }
    assert tasks == {rollout["rollout_id"]: rollout["data_id"] for rollout in rollouts}


def test_a_reward_belongs_to_the_call_before_it_and_the_last_is_the_outcome() -> None:
    first, second = two_steps()
    trajectory = only(
        [first, second, event("reward", {"value": 0.2}, at=21), event("reward", {"value": 1.0}, at=22)]
    )
    assert trajectory.reward == 1.0
    assert [step.reward for step in trajectory.steps] == [None, 0.2]


def test_a_failed_call_that_was_made_again_is_no_step() -> None:
    refused = {"response": {"error": "busy"}, "status": "error", "http_status": 500}
    rebuilt = rebuild([call("hall", "", at=5, **refused), *two_steps()])
    assert len(rebuilt.trajectories[0].steps) == 2
    assert [(item.kind, item.reason) for item in rebuilt.skipped] == [("call", "failed and was made again")]


def test_a_refused_call_without_a_reward_is_a_failure_not_an_outcome() -> None:
    refused = {"response": {"error": "too long"}, "status": "error", "http_status": 400}
    trajectory = only([call("hall", "", at=5, **refused)])
    assert trajectory.reward is None
    assert "failed" in trajectory.flags
    assert {"error_status", "missing_completion"} <= set(trajectory.steps[0].flags)


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [("You are in the hall.", "You are in the hall."), (["a"], "a"), ([5, 6, 7], "[5,6,7]")],
    ids=["text", "list of one text", "token ids"],
)
def test_the_completions_api_shows_its_prompt(prompt: Any, shown: str) -> None:
    response = {
        "prompt_token_ids": [],
        "choices": [{"text": "go east", "prompt_token_ids": [1], "token_ids": [2]}],
    }
    trajectory = only([call("", "", at=1, request={"prompt": prompt}, response=response)])
    step = trajectory.steps[0]
    assert step.observation == [{"role": "user", "content": shown}]
    assert step.action.text == "go east"
    assert (step.prompt_token_ids, step.response_token_ids) == ([1], [2])


def test_a_declared_state_is_the_state_of_the_next_call_and_of_the_end() -> None:
    declared = [
        event("state", {"state": "at the door"}, at=9),
        event("state", {"room": 2, "key": False}, at=15),
        event("state", {"state": "outside"}, at=30),
    ]
    trajectory = only([*two_steps(), *declared])
    assert [step.state for step in trajectory.steps] == ["at the door", '{"key":false,"room":2}']
    assert trajectory.final_state == "outside"


def test_a_declared_observation_replaces_what_the_prompt_shows() -> None:
    declared = [
        event("observation", {"content": "a kitchen"}, at=15),
        event("observation", {"text": "done"}, at=30),
    ]
    trajectory = only([*two_steps(), *declared])
    assert trajectory.steps[0].observation == [{"role": "user", "content": "hall"}]
    assert trajectory.steps[1].observation == [{"role": "user", "content": "a kitchen"}]
    assert trajectory.final_observation == "done"


def test_a_milestone_names_the_state_it_was_reached_in_unless_a_state_does() -> None:
    milestones = [
        event("milestone", {"name": "has the key"}, at=9),
        event("milestone", {"name": "door"}, at=15),
    ]
    trajectory = only([*two_steps(), *milestones, event("state", {"state": "kitchen"}, at=16)])
    assert [step.state for step in trajectory.steps] == ["milestone: has the key", "kitchen"]
    assert [step.model_dump()["milestones"] for step in trajectory.steps] == [["has the key"], ["door"]]


def test_an_event_without_content_is_skipped_by_name() -> None:
    rebuilt = rebuild([*two_steps(), event("state", {}, at=9)])
    assert [(item.kind, item.reason) for item in rebuilt.skipped] == [
        ("event", "a state event without content")
    ]


def test_a_free_event_of_another_kind_changes_nothing() -> None:
    assert only([*two_steps(), event("note", {"state": "x", "value": 3}, at=15)]) == only(two_steps())


def test_spans_posted_as_an_event_are_the_same_call_as_the_gateway_saw() -> None:
    first, second = two_steps()
    posted = {
        "name": "openai.chat.completion",
        "context": {"trace_id": "0" * 31 + "1", "span_id": "0" * 15 + "1"},
        "parent_id": None,
        "start_time": 9.6,
        "end_time": 9.9,
        "status": {"status_code": "OK"},
        "attributes": {
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "hall",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "go",
            "gen_ai.completion.0.finish_reason": "stop",
            "gen_ai.response.id": "reply-10",
        },
    }
    rebuilt = rebuild([first, second, event("span", posted, at=11)])
    assert rebuilt.counts["duplicate_calls"] == 1
    assert [step.response_token_ids for step in rebuilt.trajectories[0].steps] == [[3], [3]]


def test_otlp_posted_as_an_event_belongs_to_the_rollout() -> None:
    attribute = {"key": "agentlightning.reward.0.value", "value": {"doubleValue": 0.5}}
    span = {
        "traceId": "a" * 32,
        "spanId": "b" * 16,
        "name": "agentlightning.annotation",
        "startTimeUnixNano": str(21 * 10**9),
        "endTimeUnixNano": str(21 * 10**9),
        "attributes": [attribute],
    }
    otlp = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    assert only([*two_steps(), event("otlp", otlp, at=22)]).reward == 0.5
