"""Damaged and mixed traces: real captures, mutated. Never a crash, never a wrong merge, nothing invented."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from milegpo_plugin.adapters.agentops import AgentOps
from milegpo_plugin.flags import FLAGS
from milegpo_plugin.spans import LogRecord, attach_logs, read_document, read_spans
from milegpo_plugin.streams import rebuild_in_parts
from milegpo_plugin.trajectories import Partition, Reconstruction, ReconstructOptions, build_trajectories
from milegpo_plugin.trajectories.dedup import merge_duplicates
from milegpo_plugin.trajectories.evidence import read_evidence
from milegpo_plugin.types import Skipped, Span, Trajectory

DATA = Path(__file__).parents[1] / "data" / "traces"
NAMES = sorted(
    file.name.removesuffix(".otlp.jsonl")
    for file in DATA.glob("*.otlp.jsonl")
    if not file.name.endswith(".logs.otlp.jsonl") and not file.name.startswith("long_")
)
PLACED = [name for name in NAMES if name != "agentlightning03_otel__openinference"]
"""Captures whose rewards, if any, do not belong to calls by time alone."""
TOLD_APART = [name for name in NAMES if name != "autogen__team_plus_client"]
"""Captures whose calls tell which run they are of; those of a team are tied by runtime spans alone."""
CALLS_APART = ("agentops", "agentlightning03_agentops")
"""Dialects that write every tool call as a span: nothing tells that one of several is lost."""
MINTED = re.compile(r"\b(chatcmpl-|resp_|call_|fc_|msg_)([0-9a-f]{8,})")
IDS = re.compile(r'("(?:traceId|spanId|parentSpanId)": ?")([0-9a-f]+)(")')
TIMES = re.compile(r'(UnixNano": ?")(\d{19})(")')
SIGNS_OF_LOSS = frozenset(
    {
        "missing_call",
        "mid_conversation",
        "orphan_parent",
        "partial_history",
        "missing_tool_calls",
        "unasked_tool_run",
    }
)
GUESSES = frozenset({"action_from_next_call", "ambiguous_thread"})
SESSIONS = re.compile(r"\b(thread-[12]|session-7|(?:01a22c|59f974)[0-9a-f-]{30})")

captures = st.sampled_from(NAMES)
seeds = st.randoms(use_true_random=False)
quick = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@cache
def lines_of(name: str) -> tuple[str, ...]:
    """The lines of a capture, log records among them."""
    files = [DATA / f"{name}.otlp.jsonl", DATA / f"{name}.logs.otlp.jsonl"]
    return tuple(
        line for file in files if file.exists() for line in file.read_text(encoding="utf-8").splitlines()
    )


@cache
def capture(name: str) -> tuple[tuple[Span, ...], Reconstruction]:
    """The spans of a capture and what they give when nothing is wrong with them."""
    spans = spans_of(lines_of(name))
    return tuple(spans), build_trajectories(spans)


def spans_of(lines: Sequence[str]) -> list[Span]:
    items = [item for line in lines for item in read_document(orjson.loads(line))]
    spans = [item for item in items if isinstance(item, Span)]
    records = [item for item in items if isinstance(item, LogRecord)]
    return attach_logs(spans, records, on_problem=unexpected)


def unexpected(problem: Skipped) -> None:
    pytest.fail(f"unexpected: {problem}")


def retold(line: str, name: str, *, shift_ns: int = 0, new_session: bool = True) -> str:
    """The line as another run would have written it: other ids, other times, the same story."""

    def other(text: str) -> str:
        return sha256(f"{name}{text}".encode()).hexdigest()[: len(text)]

    line = MINTED.sub(lambda m: m[1] + other(m[2]), line)
    line = IDS.sub(lambda m: m[1] + other(m[2]) + m[3], line)
    if new_session:
        line = SESSIONS.sub(lambda m: f"{m[1]}-{name}", line)
    return TIMES.sub(lambda m: f"{m[1]}{int(m[2]) + shift_ns}{m[3]}", line)


def stories(trajectories):
    """What each rollout did and saw, without ids."""
    return Counter(
        tuple(
            (
                step.agent,
                step.action.text,
                tuple((call.name, repr(call.arguments)) for call in step.action.tool_calls),
                tuple(message["content"] for message in step.observation),
            )
            for step in trajectory.steps
        )
        for trajectory in trajectories
    )


def actions(trajectories):
    return Counter(
        (step.action.text, tuple((call.name, repr(call.arguments)) for call in step.action.tool_calls))
        for trajectory in trajectories
        for step in trajectory.steps
    )


def single_actions(trajectories):
    """Texts and tool calls one by one."""
    return Counter(
        part for (text, calls), count in actions(trajectories).items() for part in (text, *calls) * count
    )


def all_flags(trajectories):
    return {
        flag for t in trajectories for flag in (*t.flags, *(flag for step in t.steps for flag in step.flags))
    }


@quick
@given(name=captures, chance=seeds)
def test_the_order_of_spans_lines_and_files_does_not_matter(name, chance, tmp_path_factory):
    lines = [*lines_of(name)]
    chance.shuffle(lines)
    files = [tmp_path_factory.mktemp("lines") / f"part{part}.jsonl" for part in range(chance.randint(1, 4))]
    for part, file in enumerate(files):
        file.write_text("\n".join(lines[part :: len(files)]), encoding="utf-8")
    spans = read_spans(files, on_problem=unexpected)
    chance.shuffle(spans)
    assert build_trajectories(spans) == capture(name)[1]


@quick
@given(name=captures, chance=seeds)
def test_batches_that_arrive_twice_do_not_matter(name, chance):
    spans, whole = capture(name)
    again = chance.choices(spans, k=len(spans))
    assert build_trajectories([*spans, *again]).trajectories == whole.trajectories


@quick
@given(name=captures, chance=seeds)
def test_lost_spans_lose_steps_and_invent_none(name, chance):
    spans, whole = capture(name)
    rest = build_trajectories([span for span in spans if chance.random() > 0.1]).trajectories
    damaged = all_flags(rest) & {"missing_tool_calls", "missing_completion"}
    told = single_actions if name.startswith(CALLS_APART) else actions
    assert damaged or told(rest) <= told(whole.trajectories)
    assert sum(actions(rest).values()) <= sum(actions(whole.trajectories).values())
    assert all_flags(rest) <= FLAGS.keys()


@quick
@given(chance=seeds)
def test_lost_spans_never_join_two_rollouts(chance):
    spans, whole = capture("traceloop_openai__two_threads")
    owner = {step.span_id: t.rollout_id for t in whole.trajectories for step in t.steps}
    kept = [span for span in spans if chance.random() > 0.2]
    for trajectory in build_trajectories(kept).trajectories:
        assert len({owner[step.span_id] for step in trajectory.steps}) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_lost_call_with_calls_after_it_is_flagged(name):
    spans, whole = capture(name)
    copies = {
        copy.span_id: call.spans for call in merge_duplicates(read_evidence(spans)) for copy in call.spans
    }
    for trajectory in whole.trajectories:
        for place, step in enumerate(trajectory.steps):
            lost = {span.span_id for span in copies[step.span_id]}
            rest = build_trajectories([span for span in spans if span.span_id not in lost]).trajectories
            assert sum(actions(rest).values()) == sum(actions(whole.trajectories).values()) - 1
            if any(after.agent == step.agent for after in trajectory.steps[place + 1 :]):
                assert all_flags(rest) & SIGNS_OF_LOSS


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_capture_shows_no_sign_of_loss(name):
    assert not all_flags(capture(name)[1].trajectories) & SIGNS_OF_LOSS


@quick
@given(name=captures, length=st.integers(20, 2000))
def test_values_that_were_cut_never_break_the_reading(name, length):
    def cut(span):
        short = {k: v[:length] if isinstance(v, str) else v for k, v in span.attributes.items()}
        return replace(span, attributes=short)

    result = build_trajectories([cut(span) for span in capture(name)[0]])
    assert sum(len(t.steps) for t in result.trajectories) <= result.counts["model_calls"]
    assert all_flags(result.trajectories) <= FLAGS.keys()


@quick
@given(name=captures, chance=seeds)
def test_attributes_that_went_missing_never_break_the_reading(name, chance):
    def thin(span):
        kept = {key: value for key, value in span.attributes.items() if chance.random() > 0.3}
        return replace(span, attributes=kept, dropped_attributes=len(span.attributes) - len(kept))

    result = build_trajectories([thin(span) for span in capture(name)[0]])
    assert sum(len(t.steps) for t in result.trajectories) <= result.counts["model_calls"]


@quick
@given(name=captures, seed=st.integers(0, 2**32))
def test_values_of_other_types_never_break_the_reading(name, seed):
    chance = Random(seed)
    values = [None, True, 1, 1.5, "", [], [1, "a"], [{"text": 1}], {}, {"a": 1}]

    def other(span):
        changed = {
            k: chance.choice(values) if chance.random() < 0.1 else v for k, v in span.attributes.items()
        }
        return replace(span, attributes=changed)

    result = build_trajectories([other(span) for span in capture(name)[0]])
    assert sum(len(t.steps) for t in result.trajectories) <= result.counts["model_calls"]
    for trajectory in result.trajectories:
        assert Trajectory.model_validate_json(trajectory.model_dump_json()) == trajectory


def test_a_span_that_its_dialect_cannot_read_is_reported_and_costs_no_other(monkeypatch):
    spans = capture("agentops_openai__trace")[0]
    victim = next(span for span in spans if span.name == "openai.chat.completion")
    real = AgentOps.read_call

    def fails_on_one(self, span, tree):
        if span.span_id == victim.span_id:
            raise KeyError("arguments")
        return real(self, span, tree)

    monkeypatch.setattr(AgentOps, "read_call", fails_on_one)
    result = build_trajectories(spans)
    reason = "'openai.chat.completion' is malformed: KeyError('arguments')"
    assert Skipped("span", victim.span_id, reason) in result.skipped
    (trajectory,) = result.trajectories
    assert len(trajectory.steps) == 5
    partition = Partition()
    for span in spans:
        partition.add(span)
    assert len(partition.parts()) == 1


@quick
@given(name=captures, shift_ms=st.integers(-300, 300))
def test_another_run_of_the_same_story_at_the_same_time_stays_apart(name, shift_ms):
    lines = lines_of(name)
    other = [retold(line, "other", shift_ns=shift_ms * 1_000_000 + 1) for line in lines]
    alone = stories(capture(name)[1].trajectories)
    assert stories(build_trajectories(spans_of([*lines, *other])).trajectories) == alone + alone


@quick
@given(name=st.sampled_from(TOLD_APART), shift_ms=st.integers(0, 500), seed=st.integers(0, 2**32))
def test_lost_spans_never_join_two_runs_of_the_same_story(name, shift_ms, seed):
    chance = Random(seed)
    runs = [
        spans_of([retold(line, run, shift_ns=shift) for line in lines_of(name)])
        for run, shift in (("one", 0), ("two", shift_ms * 10**6 + 1))
    ]
    owner = {span.span_id: run for run, spans in enumerate(runs) for span in spans}
    kept = [span for spans in runs for span in spans if chance.random() > 0.1]
    for trajectory in build_trajectories(kept).trajectories:
        steps = trajectory.steps
        guessed = [step for step in steps if not GUESSES.isdisjoint(step.flags)]
        assert len({owner[step.span_id] for step in steps}) == 1 or guessed


@quick
@given(left=captures, right=captures, chance=seeds)
def test_runs_of_two_frameworks_at_the_same_time_stay_apart(left, right, chance):
    begins = [
        min(int(m[2]) for line in lines_of(name) for m in TIMES.finditer(line)) for name in (left, right)
    ]
    shift = begins[0] - begins[1] + chance.randint(1, 10**8)
    lines = [*lines_of(left), *(retold(line, "other", shift_ns=shift) for line in lines_of(right))]
    expected = stories(capture(left)[1].trajectories) + stories(capture(right)[1].trajectories)
    chance.shuffle(lines)
    assert stories(build_trajectories(spans_of(lines)).trajectories) == expected


@quick
@given(names=st.lists(st.sampled_from(PLACED), min_size=1, max_size=4), chance=seeds)
def test_rollout_by_rollout_gives_the_same_as_all_at_once(names, chance):
    lines = [
        retold(line, f"run{run}", shift_ns=run * chance.randint(0, 10**9))
        for run, name in enumerate(names)
        for line in lines_of(name)
    ]
    chance.shuffle(lines)
    spans = [span for span in spans_of(lines) if chance.random() > 0.1]
    left = []
    parts = rebuild_in_parts(
        spans, ReconstructOptions(), on_problem=unexpected, each=lambda t: left.append(t) or t
    )
    whole = build_trajectories(spans)
    by_content = Trajectory.model_dump_json
    assert sorted(left, key=by_content) == sorted(whole.trajectories, key=by_content)
    assert (parts.flags, parts.counts) == (whole.flags, whole.counts)


@pytest.mark.parametrize(
    "name", ["traceloop_openai", "openinference_openai", "genai_openai", "agentops_openai"]
)
def test_runs_of_one_story_are_held_one_at_a_time(name):
    partition = Partition()
    for run in range(5):
        for span in spans_of([retold(line, f"run{run}", shift_ns=run) for line in lines_of(name)]):
            partition.add(span)
    assert len(partition.parts()) == 5


@pytest.mark.parametrize("name", ["genai_langchain", "traceloop_langchain", "openinference_langchain"])
def test_runs_that_share_a_constant_session_id_stay_apart(name):
    lines = lines_of(name)
    other = [retold(line, "other", shift_ns=50_000_000, new_session=False) for line in lines]
    alone = stories(capture(name)[1].trajectories)
    both = build_trajectories(spans_of([*lines, *other])).trajectories
    assert stories(both) == alone + alone
    assert "shared_session" in all_flags(both)


def test_log_records_without_their_spans_are_reported(tmp_path):
    file = tmp_path / "logs.jsonl"
    lines = [line for line in lines_of("openai_v2_default") if "resourceLogs" in line]
    file.write_text("\n".join(lines), encoding="utf-8")
    problems = []
    assert read_spans([file], on_problem=problems.append) == []
    assert all(problem.reason.endswith("name a span that is not in the traces") for problem in problems)
    assert {problem.kind for problem in problems} == {"log"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rollout_id", [None, "rollout"])
def test_clocks_of_whole_seconds_lose_no_call(name, rollout_id):
    def coarse(span):
        start_ns, end_ns = (time // 10**9 * 10**9 for time in (span.start_ns, span.end_ns))
        return replace(span, start_ns=start_ns, end_ns=end_ns, rollout_id=rollout_id)

    result = build_trajectories([coarse(span) for span in capture(name)[0]])
    retried = sum(skipped.kind == "call" for skipped in result.skipped)
    calls = result.counts["model_calls"] - result.counts["duplicate_calls"]
    assert sum(len(trajectory.steps) for trajectory in result.trajectories) == calls - retried
