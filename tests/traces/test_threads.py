"""Which calls are one conversation, which conversations are one rollout, and what is new in each call."""

from __future__ import annotations

from dataclasses import replace

import pytest

from milegpo_plugin.trajectories import ReconstructOptions, build_trajectories

PLATFORM = {"rollout_id": "ro-1", "attempt_id": "at-1"}


def rebuild(spans, **options):
    return build_trajectories(spans, ReconstructOptions(**options)).trajectories


def seen(step):
    return [message["content"] for message in step.observation]


def said(trajectory):
    return [step.action.text for step in trajectory.steps]


def flags(trajectory):
    return set(trajectory.flags).union(*(step.flags for step in trajectory.steps))


@pytest.fixture
def conversation(make_call):
    """The calls of a text conversation, each one a trace of its own and with the whole history."""

    def make(*answers, task="go", at=0, every=10, **fields):
        history = [("system", "be good"), ("user", task)]
        spans = []
        for number, answer in enumerate(answers):
            spans.append(make_call(history, answer, at=at + every * number, **fields))
            history = [*history, ("assistant", answer), ("user", f"after {answer}")]
        return spans

    return make


def test_a_text_conversation_is_threaded_by_its_prefix(conversation):
    (trajectory,) = rebuild(conversation("a", "b", "c"))
    assert [seen(step) for step in trajectory.steps] == [["go"], ["after a"], ["after b"]]


def test_two_different_conversations_at_once_are_two_rollouts(conversation):
    left, right = conversation("a", "b", "c"), conversation("a", "x", "c", at=5)
    found = rebuild([*left, *right])
    assert sorted(said(trajectory) for trajectory in found) == [["a", "b", "c"], ["a", "x", "c"]]


def test_equal_conversations_at_once_stay_apart_and_say_that_the_choice_is_free(conversation):
    found = rebuild([*conversation("a", "b", "c"), *conversation("a", "b", "c", at=5)])
    assert [said(trajectory) for trajectory in found] == [["a", "b", "c"]] * 2
    assert any("ambiguous_thread" in flags(trajectory) for trajectory in found)


def test_equal_conversations_of_two_processes_stay_apart(conversation):
    left = conversation("a", "b", resource={"service.instance.id": "1"})
    right = conversation("a", "b", at=5, resource={"service.instance.id": "2"})
    found = rebuild([*left, *right])
    assert [said(trajectory) for trajectory in found] == [["a", "b"]] * 2
    assert not any("ambiguous_thread" in flags(trajectory) for trajectory in found)


def test_two_rollouts_in_one_process_are_told_apart_by_tool_call_ids(load_capture, truth):
    found = rebuild(load_capture("traceloop_openai__two_threads"))
    assert [len(trajectory.steps) for trajectory in found] == [len(truth["steps"])] * 2
    ids = [{call.id for step in t.steps for call in step.action.tool_calls} for t in found]
    assert ids[0].isdisjoint(ids[1])


def test_a_trimmed_history_does_not_split_a_rollout_that_the_platform_knows(make_call):
    """The agent sends the system prompt and its last two turns only."""
    turns, spans = [("user", "go")], []
    for n in range(6):
        history = [("system", "be good"), *turns[-3:]]
        spans.append(make_call(history, None, [(f"c{n}", "look", {})], at=10 * n, **PLATFORM))
        turns += [("assistant", None, [(f"c{n}", "look", {})]), ("tool", f"c{n}", f"room {n}")]
    (trajectory,) = rebuild(spans)
    assert [seen(step) for step in trajectory.steps] == [["go"], *([f"room {n}"] for n in range(5))]


def test_a_prompt_that_is_rendered_anew_is_the_whole_observation(make_call):
    spans = [
        make_call([("user", f"room {n}, what now?")], f"go {n}", at=10 * n, **PLATFORM) for n in range(4)
    ]
    (trajectory,) = rebuild(spans)
    assert [seen(step) for step in trajectory.steps] == [[f"room {n}, what now?"] for n in range(4)]


def test_the_agents_of_one_rollout_have_a_conversation_each(make_call):
    def call(agent, *turns, at):
        return make_call(turns, f"{agent} {at}", at=at, attributes={"gen_ai.agent.name": agent}, **PLATFORM)

    spans = [
        call("a", ("user", "for a"), at=0),
        call("b", ("user", "for b"), at=10),
        call("a", ("user", "more for a"), at=20),
        call("b", ("user", "for b"), ("assistant", "b 10"), ("user", "more for b"), at=30),
    ]
    (trajectory,) = rebuild(spans)
    assert [(step.agent, seen(step)) for step in trajectory.steps] == [
        ("a", ["for a"]),
        ("b", ["for b"]),
        ("a", ["more for a"]),
        ("b", ["more for b"]),
    ]


def test_a_chained_response_goes_on_with_the_one_it_names(make_call):
    first = make_call([("user", "go")], "a", attributes={"gen_ai.response.id": "resp_1"})
    second = make_call(
        [("user", "after a")],
        "b",
        at=10,
        attributes={"gen_ai.response.id": "resp_2", "gen_ai.request.previous_response.id": "resp_1"},
    )
    (trajectory,) = rebuild([first, second])
    assert [seen(step) for step in trajectory.steps] == [["go"], ["after a"]]


def test_a_chained_request_with_only_a_tool_result_is_linked_by_its_id(make_call):
    first = make_call([("system", "s"), ("user", "go")], None, [("c1", "look", {})])
    second = make_call([("system", "s"), ("tool", "c1", "a room")], "done", at=10)
    (trajectory,) = rebuild([first, second])
    assert seen(trajectory.steps[1]) == ["a room"]


def test_calls_are_in_order_of_the_conversation_when_clocks_are_not(conversation):
    first, second, third = (replace(s, start_ns=7, end_ns=8) for s in conversation("a", "b", "c", **PLATFORM))
    tools = [replace(s, rollout_id="ro-1") for s in (third, first, second)]
    (trajectory,) = rebuild(tools)
    assert sorted(said(trajectory)) == ["a", "b", "c"]


def test_a_host_whose_clock_is_late_does_not_turn_the_order(make_call):
    first = make_call([("user", "go")], None, [("c1", "look", {})], at=50)
    second = make_call(
        [("user", "go"), ("assistant", None, [("c1", "look", {})]), ("tool", "c1", "a room")], "done", at=20
    )
    (trajectory,) = rebuild([first, second])
    assert [step.span_id for step in trajectory.steps] == [first.span_id, second.span_id]


def test_ids_that_count_from_zero_in_every_reply_do_not_mix_rollouts(make_call):
    def play(task, at):
        asked = [("user", task)]
        answered = [*asked, ("assistant", None, [("call_0", "look", {})]), ("tool", "call_0", f"{task} room")]
        return [
            make_call(asked, None, [("call_0", "look", {})], at=at),
            make_call(answered, f"{task} done", at=at + 20),
        ]

    found = rebuild([*play("left", 0), *play("right", 10)])
    assert [said(trajectory) for trajectory in found] == [[None, "left done"], [None, "right done"]]


def test_a_lost_call_leaves_a_flag_and_no_invented_step(conversation):
    first, _, third = conversation("a", "b", "c")
    (trajectory,) = rebuild([first, third])
    assert said(trajectory) == ["a", "c"]
    assert "missing_call" in trajectory.steps[1].flags


def test_a_rollout_whose_first_call_is_lost_says_so(conversation):
    (trajectory,) = rebuild(conversation("a", "b", "c")[1:])
    assert said(trajectory) == ["b", "c"]
    assert "mid_conversation" in trajectory.steps[0].flags


def test_an_answer_that_its_span_lost_is_read_from_the_next_call(conversation):
    first, second, third = conversation("a", "b", "c")
    kept = {key: value for key, value in second.attributes.items() if key != "gen_ai.output.messages"}
    (trajectory,) = rebuild([first, replace(second, attributes=kept), third])
    assert said(trajectory) == ["a", "b", "c"]
    assert trajectory.steps[1].flags == ["action_from_next_call"]


def test_a_last_answer_that_is_lost_stays_unknown(conversation):
    first, second = conversation("a", "b")
    kept = {key: value for key, value in second.attributes.items() if key != "gen_ai.output.messages"}
    (trajectory,) = rebuild([first, replace(second, attributes=kept)])
    assert said(trajectory) == ["a", None]
    assert trajectory.steps[1].flags == ["missing_completion"]


def test_a_call_that_failed_and_was_made_again_is_no_step(conversation, make_call):
    first, second = conversation("a", "b", **PLATFORM)
    history = [("system", "be good"), ("user", "go"), ("assistant", "a"), ("user", "after a")]
    failed = make_call(history, at=5, status="ERROR", **PLATFORM)
    result = build_trajectories([first, failed, second])
    assert said(result.trajectories[0]) == ["a", "b"]
    assert [(item.kind, item.id) for item in result.skipped] == [("call", failed.span_id)]


def test_a_call_that_failed_for_good_is_a_failed_rollout(conversation, make_call):
    first, _ = conversation("a", "b", **PLATFORM)
    history = [("system", "be good"), ("user", "go"), ("assistant", "a"), ("user", "after a")]
    failed = make_call(history, at=10, status="ERROR", **PLATFORM)
    (trajectory,) = rebuild([first, failed])
    assert "failed" in trajectory.flags
    assert trajectory.steps[-1].flags == ["error_status", "missing_completion"]


def test_error_spans_of_a_capture_are_failures_not_zeros(load_capture):
    for trajectory in rebuild(load_capture("openinference_openai__err")):
        assert trajectory.reward is None
        assert "failed" in trajectory.flags


@pytest.mark.parametrize("name", ["long_agentops_openai", "long_openinference_openai", "long_genai_openai"])
def test_a_long_conversation_is_whole_though_the_sdk_evicted_its_beginning(name, load_capture):
    (trajectory,) = rebuild(load_capture(name))
    assert said(trajectory)[:-1] == [f"Step {n}." for n in range(29)]
    assert len(trajectory.steps) == 30
    for step, after in zip(trajectory.steps, trajectory.steps[1:], strict=False):
        assert [message["role"] for message in after.observation] == ["tool"]
        assert after.observation[0]["tool_call_id"] == step.action.tool_calls[0].id
    lost = [number for number, step in enumerate(trajectory.steps) if "dropped_attributes" in step.flags]
    assert bool(lost) == ("genai" not in name)
    assert lost == list(range(lost[0], 30) if lost else ())
    assert not any("partial_history" in step.flags for step in trajectory.steps)


def test_a_conversation_whose_end_the_sdk_dropped_repeats_nothing_old(load_capture):
    """The SDKs of Go and JavaScript keep the oldest attributes and refuse the newest."""

    def keep_oldest(span, count=60):
        kept = dict(list(span.attributes.items())[:count])
        return replace(span, attributes=kept, dropped_attributes=len(span.attributes) - len(kept))

    spans = [keep_oldest(s) for s in load_capture("long_agentops_openai") if not s.dropped_attributes]
    (trajectory,) = rebuild([replace(span, **PLATFORM) for span in spans])
    shown = [message["tool_call_id"] for step in trajectory.steps[1:] for message in step.observation]
    assert len(set(shown)) == len(shown)
    cut = [step for step in trajectory.steps if not step.observation]
    assert cut
    assert all("partial_history" in step.flags for step in cut)


def test_an_evicted_beginning_without_an_earlier_call_is_partial(load_capture):
    last = max(load_capture("long_agentops_openai"), key=lambda span: span.start_ns * ("chat" in span.name))
    (trajectory,) = rebuild([last])
    assert {"dropped_attributes", "partial_history"} <= set(trajectory.steps[0].flags)


def test_values_that_were_cut_are_flagged_and_do_not_split_the_rollout(load_capture):
    def cut(span):
        short = {k: v[:1000] if isinstance(v, str) else v for k, v in span.attributes.items()}
        return replace(span, attributes=short)

    (trajectory,) = rebuild([cut(span) for span in load_capture("long_genai_openai")])
    assert said(trajectory)[:-1] == [f"Step {n}." for n in range(29)]
    assert sum("truncated_json" in step.flags for step in trajectory.steps) > 20


def test_sub_agents_are_steps_of_their_rollout_with_conversations_of_their_own(load_capture):
    (trajectory,) = rebuild(load_capture("pydantic_ai__subagent"))
    assert [step.agent for step in trajectory.steps] == ["boss", *["player"] * 6, "boss"]
    assert [message["role"] for message in trajectory.steps[-1].observation] == ["tool"]


def test_a_helper_call_in_the_trace_of_a_conversation_is_part_of_the_rollout(
    make_span, conversation, make_call
):
    root = make_span("rollout", until=100)
    calls = [replace(span, trace_id=root.trace_id, parent_id=root.span_id) for span in conversation("a", "b")]
    helper = make_call([("user", "make a title")], "title", name="title", at=50, parent=root)
    (trajectory,) = rebuild([root, *calls, helper])
    assert said(trajectory) == ["a", "b", "title"]
    (filtered,) = rebuild([root, *calls, helper], span_names=["!title"])
    assert said(filtered) == ["a", "b"]


def test_calls_of_one_session_are_one_rollout(conversation):
    spans = conversation("a", "b", attributes={"session.id": "s1"})
    other = conversation("x", task="another part", at=100, attributes={"session.id": "s1"})
    (trajectory,) = rebuild([*spans, *other])
    assert trajectory.rollout_id == "s1"
    assert said(trajectory) == ["a", "b", "x"]


def test_runs_that_begin_alike_under_one_session_id_are_told_apart(conversation):
    runs = [conversation("a", f"b{n}", at=100 * n, attributes={"session.id": "1"}) for n in range(3)]
    found = rebuild([span for run in runs for span in run])
    assert [said(trajectory) for trajectory in found] == [["a", "b0"], ["a", "b1"], ["a", "b2"]]
    assert len({trajectory.rollout_id for trajectory in found}) == 3
    assert all("shared_session" in flags(trajectory) for trajectory in found)


def test_an_agent_that_comes_back_to_its_first_prompt_stays_one_rollout(make_call):
    rooms = ["hall", "study", "hall", "garden"]
    spans = [
        make_call([("user", room)], f"leave {n}", at=10 * n, attributes={"session.id": "s"})
        for n, room in enumerate(rooms)
    ]
    (trajectory,) = rebuild(spans)
    assert [seen(step) for step in trajectory.steps] == [[room] for room in rooms]


def test_a_parent_that_was_not_recorded_is_flagged(conversation):
    first, second = conversation("a", "b")
    (trajectory,) = rebuild([replace(first, parent_id="f" * 16), second])
    assert "orphan_parent" in trajectory.flags


def test_calls_without_content_are_flagged_not_dropped(make_span):
    root = make_span("rollout", until=100)
    calls = [
        make_span("chat m", {"gen_ai.operation.name": "chat"}, at=10 * n, parent=root, kind="CLIENT")
        for n in range(3)
    ]
    (trajectory,) = rebuild([root, *calls])
    assert [step.flags for step in trajectory.steps] == [["missing_completion", "no_content"]] * 3
    assert "no_task" in trajectory.flags


@pytest.fixture
def tool_run(make_span):
    def make(name, result, *, call_id=None, arguments="{}", **fields):
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.arguments": arguments,
            "gen_ai.tool.call.result": result,
        }
        if call_id:
            attributes["gen_ai.tool.call.id"] = call_id
        return make_span(f"execute_tool {name}", attributes, **fields)

    return make


def test_the_result_of_the_last_action_is_on_its_tool_span(make_call, tool_run):
    call = make_call([("user", "go")], None, [("c1", "open", {"x": 1}), ("c2", "look", {})], **PLATFORM)
    open_run = tool_run("open", "it opens", call_id="c1", at=10, **PLATFORM)
    look_run = tool_run("look", "a garden", at=5, **PLATFORM)
    (trajectory,) = rebuild([call, look_run, open_run])
    assert trajectory.final_observation == "it opens\na garden"


def test_runs_without_an_id_are_matched_by_their_arguments(make_call, tool_run):
    calls = [("c1", "open", {"x": 1}), ("c2", "open", {"x": 2})]
    call = make_call([("user", "go")], None, calls, **PLATFORM)
    runs = [tool_run("open", f"door {n}", arguments=f'{{"x": {n}}}', at=20 - n, **PLATFORM) for n in (1, 2)]
    (trajectory,) = rebuild([call, *runs])
    assert trajectory.final_observation == "door 1\ndoor 2"


def test_a_last_result_that_nobody_recorded_is_flagged(make_call, tool_run):
    call = make_call([("user", "go")], None, [("c1", "open", {}), ("c2", "look", {})], **PLATFORM)
    (trajectory,) = rebuild([call, tool_run("look", "a garden", at=5, **PLATFORM)])
    assert trajectory.final_observation is None
    assert "missing_final_observation" in trajectory.flags


def test_a_result_that_stands_only_in_a_filtered_call_is_found(make_call):
    asked = make_call([("user", "go")], None, [("c1", "look", {})], **PLATFORM)
    history = [("user", "go"), ("assistant", None, [("c1", "look", {})]), ("tool", "c1", "a room")]
    after = make_call(history, "bye", name="summary", at=10, **PLATFORM)
    (trajectory,) = rebuild([asked, after], span_names=["chat*"])
    assert trajectory.final_observation == "a room"


def test_a_platform_rollout_without_a_model_call_is_skipped_with_the_reason(make_span):
    result = build_trajectories([make_span("something", **PLATFORM)])
    assert result.trajectories == []
    (item,) = result.skipped
    assert (item.kind, item.id) == ("rollout", "ro-1")
    assert "no model call was traced" in item.reason


def test_no_spans_are_no_trajectories():
    result = build_trajectories([])
    assert (result.trajectories, result.skipped) == ([], [])


def test_the_task_is_named_by_an_attribute_by_the_platform_or_by_the_first_message(conversation):
    spans = conversation("a", resource={"task.id": "from the resource"}, **PLATFORM)
    assert rebuild(spans)[0].task_id == "go"
    assert rebuild(spans, tasks={"ro-1": "t7"})[0].task_id == "t7"
    named = rebuild(spans, task_attribute="task.id", tasks={"ro-1": "t7"})[0]
    assert named.task_id == "from the resource"
    assert "task_from_message" not in named.flags
    assert "task_from_message" in rebuild(spans, task_attribute="absent")[0].flags


def test_filters_by_agent_and_model(make_call):
    def call(model, at):
        return make_call(
            [("user", model)], model, at=at, attributes={"gen_ai.request.model": model}, **PLATFORM
        )

    spans = [call("small", 0), call("large", 10), call("large-judge", 20)]
    assert said(rebuild(spans, models=["large*", "!*judge"])[0]) == ["large"]
    result = build_trajectories(spans, ReconstructOptions(agents=["nobody"]))
    assert result.trajectories == []
    assert "passes the filter" in result.skipped[0].reason


def test_agents_that_are_each_others_parents_in_broken_data_do_not_end_the_reading(make_span, make_call):
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "player"}
    outer = make_span("invoke_agent player", agent, at=0, until=9)
    inner = make_span("invoke_agent player", agent, at=1, until=8, parent=outer)
    call = make_call([("user", "Open the door.")], "Done.", parent=inner, at=2)
    circle = [replace(outer, parent_id=inner.span_id), inner, call]
    (trajectory,) = build_trajectories(circle).trajectories
    assert [(step.agent, step.action.text) for step in trajectory.steps] == [("player", "Done.")]


def test_two_calls_of_one_reply_may_have_one_id(make_call):
    history = [("user", "go")]
    calls = [("call_0", "look", {}), ("call_0", "move", {})]
    first = make_call(history, calls=calls, at=0)
    history = [
        *history,
        ("assistant", None, calls),
        ("tool", "call_0", "a hall"),
        ("tool", "call_0", "moved"),
    ]
    second = make_call(history, calls=calls, at=10)
    third = make_call([*history, ("assistant", None, calls), ("tool", "call_0", "a hall")], "done", at=20)
    (rollout,) = rebuild([first, second, third])
    assert len(rollout.steps) == 3
