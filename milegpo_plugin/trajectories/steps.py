"""The calls of one rollout → its steps, and what the last action led to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from milegpo_plugin.adapters.messages import message_text, read_action
from milegpo_plugin.adapters.values import UNPARSED_ARGUMENTS
from milegpo_plugin.trajectories.calls import Call, is_incomplete, same_message
from milegpo_plugin.trajectories.observations import join_tool_results, new_messages, recover_reply
from milegpo_plugin.trajectories.results import Answers, result_messages, split_joined_results
from milegpo_plugin.types import Message, Skipped, Step, trusted


def drop_retried(calls: Sequence[Call]) -> tuple[list[Call], list[Skipped]]:
    """Leave out calls that failed without an answer when the same request was made again."""
    if not any(map(_has_failed, calls)):
        return list(calls), []
    last_messages: dict[int, list[Message]] = {}
    kept, skipped = [], []
    for call in reversed(calls):
        failed = _has_failed(call)
        again = last_messages.get(call.input_end, ())
        if failed and call.read.messages and any(same_message(call.read.messages[-1], m) for m in again):
            skipped.append(Skipped("call", call.read.span.span_id, "failed and was made again"))
        else:
            kept.append(call)
        if call.read.messages:
            last_messages.setdefault(call.input_end, []).append(call.read.messages[-1])
    return kept[::-1], skipped[::-1]


def _has_failed(call: Call) -> bool:
    return call.read.reply is None and "error_status" in call.flags


def recover_replies(calls: Sequence[Call]) -> None:
    """An answer that its own span lost, or its tool calls, stand in the history of the next call."""
    for call in calls:
        predecessor = call.predecessor
        if predecessor is None or not is_incomplete(predecessor.read):
            continue
        reply = recover_reply(call)
        if reply is not None and (predecessor.read.reply is None or reply.get("tool_calls")):
            predecessor.read = replace(predecessor.read, reply=reply)
            predecessor.flags -= {"missing_completion", "missing_tool_calls"}
            predecessor.flags.add("action_from_next_call")


def observe(calls: Sequence[Call], answers: Answers) -> dict[Call, list[Message]]:
    """What is new in each call, with the results of the tools that its predecessor called."""
    observations = {}
    for call in calls:
        observation = new_messages(call)
        if call.predecessor is not None:
            observation = split_joined_results(observation, call.predecessor, answers)
            observation = join_tool_results(observation, call.predecessor.read.reply)
            observation = observation or result_messages(call.predecessor, answers)
            if _has_more_results(observation, call.predecessor):
                call.predecessor.flags.add("missing_tool_calls")
        observations[call] = observation
    return observations


def build_step(call: Call, observation: list[Message], reward: float | None) -> Step:
    """One decision of the policy."""
    read = call.read
    action = read_action(read.reply)
    flags = set(call.flags)
    for asked in action.tool_calls:
        if UNPARSED_ARGUMENTS in asked.arguments:
            flags.add("invalid_arguments")
    if call.missing_turns:
        flags.add("missing_call")
    return trusted(
        Step,
        {
            "state": None,
            "observation": list(map(dict, observation)),
            "agent": call.agent,
            "action": action,
            "reward": reward,
            "prompt_token_ids": None if read.prompt_token_ids is None else list(read.prompt_token_ids),
            "response_token_ids": None if read.response_token_ids is None else list(read.response_token_ids),
            "logprobs": None if read.logprobs is None else list(read.logprobs),
            "span_id": read.span.span_id,
            "flags": sorted(flags),
        },
    )


def final_observation(
    last: Call, observations: Mapping[Call, list[Message]], answers: Answers
) -> tuple[str | None, bool]:
    """The results of the last action as one text, and whether results are missing.

    They stand in the request of a later call that is no step, or on the tools' own spans. Several
    results are joined by line ends, as in an observation. An action without tool calls has none.
    """
    asked = last.read.reply.get("tool_calls", ()) if last.read.reply else ()
    if not asked:
        return None, False
    found = result_messages(last, answers)
    for call, observation in observations.items():
        if call.predecessor is last:
            found = [message for message in observation if message["role"] == "tool"] or found
    if len(found) < len(asked):
        return None, True
    return "\n".join(message_text(message) or "" for message in found), False


def _has_more_results(observation: Sequence[Message], predecessor: Call) -> bool:
    reply = predecessor.read.reply
    asked = len(reply.get("tool_calls", ())) if reply else 0
    return 0 < asked < len(observation) and asked < sum(message["role"] == "tool" for message in observation)
