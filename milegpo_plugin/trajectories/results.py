"""Executions of tools: which tool call of which step each one answers.

By call id; else by name and arguments; else by name and order. Only runs that began after the
call that asked for them can answer it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

from milegpo_plugin.adapters import ToolRun
from milegpo_plugin.adapters.messages import chat_message
from milegpo_plugin.adapters.values import parse_arguments
from milegpo_plugin.trajectories.calls import Call
from milegpo_plugin.types import JSON, Message

Answers = Mapping[tuple[Call, int], ToolRun]
"""The run that answers the n-th tool call of a model call."""


def match_runs(calls: Sequence[Call], runs: Iterable[ToolRun]) -> Answers:
    """The runs of one rollout on the tool calls of its model calls, each run at most once."""
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


def result_messages(call: Call, answers: Answers) -> list[Message]:
    """The recorded results of ``call``'s tool calls as tool messages, in the order of the calls."""
    messages = []
    for number, asked in enumerate(_tool_calls(call)):
        run = answers.get((call, number))
        if run is not None and run.result is not None:
            messages.append(chat_message("tool", run.result, tool_call_id=asked["id"]))
    return messages


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
