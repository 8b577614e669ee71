"""What is new in a call since its predecessor, and turns that only a later history shows."""

from __future__ import annotations

from collections.abc import Sequence

from milegpo_plugin.adapters.messages import merge_replies, message_text, tool_call_ids
from milegpo_plugin.trajectories.calls import Call, is_incomplete, is_reply, same_message
from milegpo_plugin.types import Message


def new_messages(call: Call) -> list[Message]:
    """The messages of ``call`` since its predecessor's answer; all but the system prompt at first.

    Flags the call with ``partial_history`` when lost messages may be among the new ones.
    """
    new, is_partial = _new_messages(call)
    if is_partial:
        call.flags.add("partial_history")
    return new


def recover_reply(call: Call) -> Message | None:
    """The answer of ``call``'s predecessor as ``call``'s history shows it right after the request."""
    predecessor = call.predecessor
    if predecessor is None or call.missing_turns or call.read.is_delta:
        return None
    offset = predecessor.input_end - call.read.first_index
    end = _end_of_answer(call, predecessor, offset)
    return None if end is None else merge_replies(call.read.messages[offset:end])


def join_tool_results(observation: Sequence[Message], reply: Message | None) -> list[Message]:
    """Tool results with the ids of the calls they answer; unknown ids are matched by order.

    Some instrumentations drop the id of a result, or write another kind of id than on the call.
    """
    open_ids = tool_call_ids(reply) if reply else []
    if not open_ids:
        return list(observation)
    answered = [message.get("tool_call_id") for message in observation]
    free = [call_id for call_id in open_ids if call_id not in answered]
    if not free:
        return list(observation)
    joined: list[Message] = []
    for message in observation:
        known = message["role"] != "tool" or message.get("tool_call_id") in open_ids
        if not known and free:
            message = {**message, "tool_call_id": free.pop(0)}
        joined.append(message)
    return joined


def _new_messages(call: Call) -> tuple[list[Message], bool]:
    """The new messages, and whether some may be lost."""
    messages, predecessor = call.read.messages, call.predecessor
    if predecessor is None or call.read.is_delta:
        return _without_system(messages), bool(call.read.first_index)
    has_lost_its_end = _has_lost_its_end(call)
    if has_lost_its_end and call.input_end <= predecessor.input_end:
        return [], True
    start, is_certain = _start_of_new(call, predecessor)
    new = list(messages[start:]) if start else _without_system(messages)
    return new, bool(call.read.first_index and not is_certain) or (has_lost_its_end and not new)


def _start_of_new(call: Call, predecessor: Call) -> tuple[int, bool]:
    """Where the new messages begin, and whether the predecessor's request or answer was found.

    After its request and answer; else after its answer wherever that is; else after the last
    assistant turn; else at the beginning.
    """
    messages = call.read.messages
    offset = predecessor.input_end - call.read.first_index
    end = _end_of_answer(call, predecessor, offset)
    if end is not None:
        return end, True
    places = range(len(messages) - 1, -1, -1)
    for place in places:
        if is_reply(messages[place], predecessor.read.reply):
            return place + 1, True
    last = next((place + 1 for place in places if messages[place]["role"] == "assistant"), 0)
    return last, False


def _has_lost_its_end(call: Call) -> bool:
    """Whether the newest messages may be lost: some SDKs keep the oldest attributes and drop the rest."""
    dropped = call.read.span.dropped_attributes and not call.read.first_index
    return bool(dropped) or "truncated_json" in call.flags


def _end_of_answer(call: Call, predecessor: Call, offset: int) -> int | None:
    """Where the answer at ``offset`` ends when ``call``'s request is the predecessor's, then its answer; else None.

    The answer may be missing: some agents drop a turn that failed. A request that is no longer than
    the predecessor's is no continuation: it shows a window of the history, or it is a retry.
    """
    messages, earlier = call.read.messages, predecessor.read
    if not 0 <= offset < len(messages):
        return None
    end, reply = _end_of_turn(messages, offset), earlier.reply
    ids = tool_call_ids(reply) if reply is not None and end > offset else []
    if ids and tool_call_ids(messages[offset]) == ids:
        return end
    if offset and earlier.messages and not same_message(messages[offset - 1], earlier.messages[-1]):
        return None
    if end == offset or reply is None or is_incomplete(earlier):
        return end
    turn = messages[offset:end]
    return end if any(is_reply(message, reply) for message in turn) or _is_split(turn, reply) else None


def _is_split(turn: Sequence[Message], reply: Message) -> bool:
    merged = merge_replies(turn)
    return merged is not None and message_text(merged) == message_text(reply)


def _end_of_turn(messages: Sequence[Message], start: int) -> int:
    """The end of the run of assistant messages at ``start``."""
    end, count = start, len(messages)
    while end < count and messages[end]["role"] == "assistant":
        end += 1
    return end


def _without_system(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message["role"] != "system"]
