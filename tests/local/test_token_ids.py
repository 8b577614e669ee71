from __future__ import annotations

import numpy as np

from milegpo_plugin.local.records import SamplingRecord, SamplingRecords
from milegpo_plugin.local.token_ids import fill_token_ids
from milegpo_plugin.types import Action, Step, ToolCall, Trajectory


def rollout(*steps: Step) -> Trajectory:
    return Trajectory(task_id="t", rollout_id="r", steps=list(steps))


def call(call_id: str | None, **ids: list[int]) -> Step:
    return Step(action=Action(tool_calls=[ToolCall(id=call_id, name="go")]), **ids)


def kept() -> SamplingRecords:
    records = SamplingRecords()
    drawn = SamplingRecord((None, None), np.array([-0.5, -1.0], dtype=np.float32), 1.0, 0)
    records.add([1, 2], [3, 4], drawn)
    records.name_call("call_a", [1, 2], [3, 4])
    return records


def test_a_step_without_token_ids_gets_those_of_its_tool_call() -> None:
    (filled,) = fill_token_ids([rollout(call("call_a"))], kept())
    (step,) = filled.steps
    assert (step.prompt_token_ids, step.response_token_ids) == ([1, 2], [3, 4])
    assert step.logprobs == [-0.5, -1.0]


def test_token_ids_that_were_traced_stay() -> None:
    traced = rollout(call("call_a", prompt_token_ids=[7], response_token_ids=[8]))
    assert fill_token_ids([traced], kept()) == [traced]


def test_a_call_from_elsewhere_and_a_step_without_calls_stay_unknown() -> None:
    unknown = rollout(call("call_b"), call(None), Step(action=Action(text="hello")))
    assert fill_token_ids([unknown], kept()) == [unknown]


def test_clearing_forgets_the_calls() -> None:
    records = kept()
    records.clear()
    assert records.find_call("call_a") is None


def test_the_oldest_calls_make_room() -> None:
    records = SamplingRecords(capacity=2)
    for number in range(3):
        records.name_call(f"call_{number}", [number], [number])
    assert records.find_call("call_0") is None
    assert records.find_call("call_2") == ([2], [2])
