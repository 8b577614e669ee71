"""Rollouts leave the buffer when they have been quiet, whole and apart from one another."""

from __future__ import annotations

import pytest

from milegpo_plugin.files import keep_whole
from milegpo_plugin.receive import RolloutBuffer
from milegpo_plugin.spans.files import iter_items
from milegpo_plugin.streams import rebuild_in_parts, rebuild_part
from milegpo_plugin.trajectories import ReconstructOptions
from milegpo_plugin.types import Skipped

OPTIONS = ReconstructOptions()
CAPTURES = (
    "traceloop_openai",
    "openai_v2_default",
    "openinference_langchain__plus_client",
    "autogen__team_plus_client",
    "agentlightning03_otel__openinference",
    "litellm_otel",
)
EVERY_CAPTURE = pytest.mark.parametrize("name", CAPTURES)


def fail(problem: Skipped) -> None:
    raise AssertionError(problem)


@pytest.fixture
def load(traces):
    """Spans of a capture, then its log records."""

    def items(name):
        logs = traces / f"{name}.logs.otlp.jsonl"
        return list(
            iter_items([traces / f"{name}.otlp.jsonl"], [logs] if logs.exists() else [], on_problem=fail)
        )

    return items


def rebuild(items):
    return rebuild_part(items, OPTIONS, on_problem=fail).trajectories


@EVERY_CAPTURE
def test_a_rollout_whose_spans_come_one_by_one_leaves_as_one(name, load):
    items = load(name)
    buffer = RolloutBuffer(idle_s=len(items))
    for second, item in enumerate(items):
        buffer.add([item], float(second))
        assert not buffer.take_quiet(float(second))
    last = len(items) - 1.0
    assert not [part for part in buffer.take_quiet(last + len(items) - 0.5) if rebuild(part)]
    rollouts = [rollout for part in buffer.take_quiet(last + len(items)) for rollout in rebuild(part)]
    assert rollouts == rebuild(items)
    assert not buffer.take_all()


@EVERY_CAPTURE
def test_log_records_may_come_before_their_spans(name, load):
    buffer = RolloutBuffer(idle_s=1)
    items = load(name)
    buffer.add(items[::-1], 0.0)
    (rollouts,) = [found for part in buffer.take_quiet(1.0) if (found := rebuild(part))]
    assert rollouts == rebuild(items)


def test_a_rollout_leaves_while_another_one_goes_on(load):
    buffer = RolloutBuffer(idle_s=10)
    first, second = load("traceloop_openai"), load("genai_langchain")
    buffer.add(first, 0.0)
    buffer.add(second[:5], 0.0)
    buffer.add(second[5:], 8.0)
    (part,) = buffer.take_quiet(12.0)
    assert {item.trace_id for item in part} == {item.trace_id for item in first}
    (part,) = buffer.take_quiet(18.0)
    assert {item.trace_id for item in part} == {item.trace_id for item in second}


def test_nothing_leaves_an_empty_buffer():
    buffer = RolloutBuffer(idle_s=1)
    assert buffer.take_quiet(100.0) == buffer.take_all() == []


def test_what_is_left_can_be_taken_at_any_time(load):
    buffer = RolloutBuffer(idle_s=1000)
    items = load("traceloop_openai")
    buffer.add(items, 0.0)
    (part,) = buffer.take_all()
    assert rebuild(part) == rebuild(items)


def test_two_rollouts_of_one_process_are_told_apart_by_their_tool_calls(load):
    buffer = RolloutBuffer(idle_s=1)
    items = load("traceloop_openai__two_threads")
    buffer.add(items, 0.0)
    rollouts = [rollout for part in buffer.take_quiet(2.0) for rollout in rebuild(part)]
    assert sorted(len(rollout.steps) for rollout in rollouts) == [6, 6]


def test_many_captures_at_once_are_rebuilt_part_by_part_as_each_alone(load):
    captures = [load(name) for name in CAPTURES]
    mixed = [item for row in zip(*captures, strict=False) for item in row]
    mixed += [item for items in captures for item in items if item not in mixed]
    whole = rebuild_in_parts(mixed, OPTIONS, on_problem=fail, each=keep_whole)
    alone = [rollout for items in captures for rollout in rebuild(items)]
    key = lambda rollout: rollout.model_dump_json()  # noqa: E731
    assert sorted(whole.trajectories, key=key) == sorted(alone, key=key)
