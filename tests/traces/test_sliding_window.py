"""An agent that shows the model a window of its history: requests keep their length."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from milegpo_plugin.spans import read_spans
from milegpo_plugin.trajectories import build_trajectories

COIN = Path(__file__).parents[2] / "examples" / "traces" / "coin.agl_spans.jsonl.gz"


def test_every_step_sees_the_newest_tool_result_and_nothing_else():
    problems: list = []
    rebuilt = build_trajectories(read_spans([COIN], on_problem=problems.append))
    assert problems == []
    assert len(rebuilt.trajectories) == 16
    for trajectory in rebuilt.trajectories:
        roles = [[message["role"] for message in step.observation] for step in trajectory.steps]
        assert roles == [["user"]] + [["tool"]] * (len(trajectory.steps) - 1)
        previous = [step.action.tool_calls[0].id for step in trajectory.steps[:-1]]
        assert [step.observation[0]["tool_call_id"] for step in trajectory.steps[1:]] == previous


def test_the_order_of_the_spans_does_not_matter(tmp_path):
    with gzip.open(COIN, "rt", encoding="utf-8") as stream:
        lines = stream.readlines()
    turned = tmp_path / "turned.agl_spans.jsonl"
    turned.write_text("".join(reversed(lines)), encoding="utf-8")
    problems: list = []
    first, second = (
        {
            t.rollout_id: t
            for t in build_trajectories(read_spans([path], on_problem=problems.append)).trajectories
        }
        for path in (COIN, turned)
    )
    assert json.dumps({k: t.model_dump() for k, t in sorted(first.items())}) == json.dumps(
        {k: t.model_dump() for k, t in sorted(second.items())}
    )
