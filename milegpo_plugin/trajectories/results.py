"""Executions of tools: which tool call of which step each one answers.

By call id; else by name and arguments; else by name and order. Only runs that began after the
call that asked for them can answer it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

from milegpo_plugin.adapters import ToolRun
from milegpo_plugin.adapters.messages import chat_message, message_text
from milegpo_plugin.adapters.values import parse_arguments
from milegpo_plugin.trajectories.calls import Call
from milegpo_plugin.types import JSON, Message

Answers = Mapping[tuple[Call, int], ToolRun]
"""The run that answers the n-th tool call of a model call."""


def match_runs(calls: Sequence[Call], runs: Sequence[ToolRun]) -> Answers:
    """The runs of one rollout on the tool calls of its model calls, each run at most once."""
    if not runs:
        return {}
    by_id: dict[str, ToolRun] = {}
    by_name: defaultdict[str, deque[ToolRun]] = defaultdict(deque)
    for run in runs:
        if run.call_id is not None:
            by_id[run.call_id] = run
        else:
            by_name[run.name].append(run)
    answers: dict[tuple[Call, int], ToolRun] = {}
    for call in calls:
        for number, asked in enumerate(_tool_calls(call)):
            found = by_id.get(asked["id"]) if asked["id"] else None
            found = found or _take(by_name.get(asked["function"]["name"]), asked, call)
            if found is not None:
                answers[call, number] = found
    return answers


def flag_unasked_runs(calls: Sequence[Call], runs: Sequence[ToolRun], answers: Answers) -> None:
    """Flag the call after which a tool ran that nobody asked for: what asked for it was not recorded.

    An answer without tool calls may be code that runs tools, so nothing can be told after one. A
    tool that ran again for one call was retried.
    """
    if not runs:
        return
    answered = {id(run) for run in answers.values()}
    asked_ids = {asked["id"] for call in calls for asked in _tool_calls(call)} - {None}
    ended = sorted(calls, key=lambda call: call.end_ns)
    ends = [call.end_ns for call in ended]
    for run in runs:
        place = bisect_right(ends, run.span.start_ns)
        if id(run) in answered or run.is_part or run.call_id in asked_ids or not place:
            continue
        before = ended[place - 1]
        if _tool_calls(before) and not _asked_for(before, run):
            before.flags.add("unasked_tool_run")


def _asked_for(call: Call, run: ToolRun) -> bool:
    return any(
        asked["function"]["name"] == run.name
        and (run.arguments is None or parse_arguments(asked["function"]["arguments"]) == run.arguments)
        for asked in _tool_calls(call)
    )


def result_messages(call: Call, answers: Answers) -> list[Message]:
    """The recorded results of ``call``'s tool calls as tool messages, in the order of the calls."""
    messages: list[Message] = []
    for number, asked in enumerate(_tool_calls(call) if answers else ()):
        run = answers.get((call, number))
        if run is not None and run.result is not None:
            messages.append(chat_message("tool", run.result, tool_call_id=asked["id"]))
    return messages


def split_joined_results(observation: list[Message], call: Call, answers: Answers) -> list[Message]:
    """One message that joins the results of several calls, as one for each, where their runs tell."""
    if not answers:
        return observation
    results = [message for message in observation if message["role"] == "tool"]
    apart = result_messages(call, answers)
    if len(results) != 1 or len(apart) < 2 or len(apart) < len(_tool_calls(call)):
        return observation
    left = message_text(results[0]) or ""
    for text in sorted((str(message["content"]).strip() for message in apart), key=len, reverse=True):
        before, found, after = left.partition(text)
        if not found:
            return observation
        left = f"{before}\n{after}"
    if left.strip():
        return observation
    place = observation.index(results[0])
    return [*observation[:place], *apart, *observation[place + 1 :]]


def _tool_calls(call: Call) -> Sequence[Mapping[str, JSON]]:
    reply = call.read.reply
    return reply.get("tool_calls", ()) if reply else ()


def _take(waiting: deque[ToolRun] | None, asked: Mapping[str, JSON], call: Call) -> ToolRun | None:
    """The first waiting run with the asked arguments, else the first one that tells none."""
    if not waiting:
        return None
    while waiting and waiting[0].span.start_ns < call.start_ns:
        waiting.popleft()
    arguments = parse_arguments(asked["function"]["arguments"])
    for place, run in enumerate(waiting):
        if run.arguments is None or run.arguments == arguments:
            del waiting[place]
            return run
    return None
