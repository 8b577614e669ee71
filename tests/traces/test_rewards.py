"""Rewards: which call they belong to, which one is the outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest

from milegpo_plugin.adapters import DIALECTS
from milegpo_plugin.trajectories import ReconstructOptions, build_trajectories
from milegpo_plugin.types import SpanEvent


@pytest.fixture
def rollout(make_span):
    """Builds the spans of one rollout from ``"call"`` and rewards, in order of time."""

    def build(*happenings, rollout_id="ro-1", attempt_id="at-1", trace="t", at=0):
        spans = []
        for number, happening in enumerate(happenings):
            fields = {
                "rollout_id": rollout_id,
                "attempt_id": attempt_id,
                "at": at + 10 * number,
                "trace": trace,
            }
            if happening == "call":
                spans.append(make_span("chat m", chat(f"answer {number}"), **fields))
            else:
                spans.append(make_span("agentlightning.annotation", reward(happening), **fields))
        return spans

    return build


def chat(answer, question="go"):
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": f'[{{"role": "user", "parts": [{{"type": "text", "content": "{question}"}}]}}]',
        "gen_ai.output.messages": f'[{{"role": "assistant", "parts": [{{"type": "text", "content": "{answer}"}}]}}]',
    }


def reward(dimensions):
    pairs = dimensions.items() if isinstance(dimensions, dict) else [("primary", dimensions)]
    return {
        f"agentlightning.reward.{k}.{key}": item
        for k, (name, value) in enumerate(pairs)
        for key, item in (("name", name), ("value", value))
    }


def rebuild(spans, **options):
    (trajectory,) = build_trajectories(spans, ReconstructOptions(**options)).trajectories
    return trajectory


def step_rewards(trajectory):
    return [step.reward for step in trajectory.steps]


@pytest.mark.parametrize(
    ("happenings", "steps", "outcome"),
    [
        pytest.param(
            ["call", "call", 0.2, 1.0], [None, 0.2], 1.0, id="a reward never slides to an earlier call"
        ),
        pytest.param(["call", "call", 1.0], [None, None], 1.0, id="the only reward is the outcome"),
        pytest.param(
            ["call", 0.1, "call", 0.2, "call", 1.0], [0.1, 0.2, None], 1.0, id="the last is the outcome"
        ),
        pytest.param(["call", 0.1, 0.3, "call", 1.0], [0.4, None], 1.0, id="several after one call add up"),
        pytest.param(["call", 1.0, "call", 1.0, "call", 1.0], [None] * 3, 1.0, id="copies are not summed"),
        pytest.param(["call", 0.0, "call", 0.0], [None] * 2, 0.0, id="copies of zero are zero"),
        pytest.param(["call", {"final": 1.0}, "call", 0.3], [None, 0.3], 1.0, id="the one named final"),
        pytest.param([0.7, "call", 1.0], [None], 1.0, id="a reward before every call belongs to none"),
        pytest.param(["call", "call"], [None, None], None, id="no reward is unknown, not zero"),
        pytest.param(
            ["call", float("nan"), "call", 0.5], [None, None], 0.5, id="a reward that is no number is none"
        ),
    ],
)
def test_rewards_of_one_rollout(happenings, steps, outcome, rollout):
    trajectory = rebuild(rollout(*happenings))
    assert step_rewards(trajectory) == steps
    assert trajectory.reward == outcome
    assert ("no_reward" in trajectory.flags) == (outcome is None)


def test_a_reward_on_every_step_is_said_to_be_a_copy(rollout):
    assert "copied_reward" in rebuild(rollout("call", 1.0, "call", 1.0)).flags
    assert "copied_reward" not in rebuild(rollout("call", 1.0, "call", 0.5)).flags


def test_the_first_dimension_counts_unless_one_is_named(rollout):
    spans = rollout("call", {"task": 1.0, "speed": 0.25})
    assert rebuild(spans).reward == 1.0
    assert rebuild(spans, reward_name="speed").reward == 0.25
    absent = rebuild(spans, reward_name="style")
    assert absent.reward is None
    assert "no_reward" in absent.flags


def test_a_link_beats_time(rollout):
    first, second, late = rollout("call", "call", 0.4)
    link = {"agentlightning.link.0.key_match": "span_id", "agentlightning.link.0.value_match": first.span_id}
    late = replace(late, attributes={**late.attributes, **link})
    (final,) = rollout(1.0, at=100)
    assert step_rewards(rebuild([first, second, late, final])) == [0.4, None]


def test_a_link_may_name_the_response(rollout):
    first, second, late = rollout("call", "call", 0.4)
    first = replace(first, attributes={**first.attributes, "gen_ai.response.id": "r1"})
    link = {
        "agentlightning.link.0.key_match": "gen_ai.response.id",
        "agentlightning.link.0.value_match": "r1",
    }
    late = replace(late, attributes={**late.attributes, **link})
    (final,) = rollout(1.0, at=100)
    assert step_rewards(rebuild([first, second, late, final])) == [0.4, None]


def test_an_evaluation_on_a_call_rewards_that_call_and_one_on_the_root_is_the_outcome(make_span):
    def scored(value):
        return [SpanEvent("gen_ai.evaluation.result", 0, {"gen_ai.evaluation.name": "q", **value})]

    root = make_span("invoke_agent a", {"gen_ai.operation.name": "invoke_agent"}, until=100)
    score = {"gen_ai.evaluation.score.value": 0.5}
    first = make_span("chat m", chat("one"), at=10, parent=root, events=scored(score))
    second = make_span("chat m", chat("two"), at=20, parent=root)
    root = replace(root, events=tuple(scored({"gen_ai.evaluation.score.value": 0.9})))
    trajectory = rebuild([root, first, second])
    assert step_rewards(trajectory) == [0.5, None]
    assert trajectory.reward == 0.9


def test_given_rewards_count_only_where_the_trace_has_none(rollout):
    given = {"ro-1": 0.1, "ro-2": 0.2}
    spans = rollout("call", 1.0) + rollout("call", rollout_id="ro-2", trace="u")
    found = build_trajectories(spans, ReconstructOptions(rewards=given)).trajectories
    assert {t.rollout_id: t.reward for t in found} == {"ro-1": 1.0, "ro-2": 0.2}


def test_success_is_a_reward_above_the_threshold(rollout):
    assert rebuild(rollout("call", 0.5), success_threshold=0.5).success is False
    assert rebuild(rollout("call", 0.6), success_threshold=0.5).success is True
    assert rebuild(rollout("call", 0.6)).success is None
    assert rebuild(rollout("call"), success_threshold=0.5).success is None


def test_a_reward_in_a_trace_of_its_own_goes_to_the_rollout_that_runs(rollout):
    def apart(at, value):
        calls = rollout("call", "call", rollout_id=None, attempt_id=None, trace=f"t{at}", at=at)
        return calls + rollout(value, rollout_id=None, attempt_id=None, trace=f"r{at}", at=at + 50)

    found = build_trajectories([*apart(0, 1.0), *apart(100, 0.0)]).trajectories
    assert [t.reward for t in found] == [1.0, 0.0]


def test_a_reward_that_could_be_of_two_rollouts_is_left_out_and_said(rollout):
    calls = [
        *rollout("call", "call", rollout_id=None, trace="t"),
        *rollout("call", "call", rollout_id=None, trace="u", at=5),
        *rollout(1.0, rollout_id=None, trace="r", at=100),
    ]
    result = build_trajectories(calls)
    assert [t.reward for t in result.trajectories] == [None, None]
    assert [item.kind for item in result.skipped] == ["reward"]


def test_the_attempt_with_a_reward_counts_and_the_others_are_named(rollout):
    first = rollout("call", 1.0, attempt_id="at-1")
    crashed = rollout("call", attempt_id="at-2", trace="u", at=100)
    result = build_trajectories(first + crashed)
    (trajectory,) = result.trajectories
    assert (trajectory.attempt_id, trajectory.reward) == ("at-1", 1.0)
    assert "stale_attempt" in trajectory.flags
    assert [(item.kind, item.id) for item in result.skipped] == [("attempt", "ro-1/at-2")]


def test_of_two_attempts_alike_the_last_counts_unless_one_is_given(rollout):
    spans = rollout("call", 1.0, attempt_id="at-1") + rollout(
        "call", 0.0, attempt_id="at-2", trace="u", at=100
    )
    assert rebuild(spans).attempt_id == "at-2"
    assert rebuild(spans, attempts={"ro-1": "at-1"}).attempt_id == "at-1"


def test_a_crash_without_a_reward_is_a_failure_and_one_with_a_reward_is_not(rollout, make_span):
    crash = make_span(
        "agentlightning.exception",
        {"exception.type": "ValueError"},
        at=90,
        rollout_id="ro-1",
        attempt_id="at-1",
    )
    assert "failed" in rebuild([*rollout("call"), crash]).flags
    assert "failed" not in rebuild([*rollout("call", 0.0), crash]).flags


def test_every_dialect_has_a_name_of_its_own():
    names = [dialect.name for dialect in DIALECTS]
    assert len(set(names)) == len(names)
