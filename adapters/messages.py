"""Messages of any shape → OpenAI chat form: ``role, content, tool_calls?, tool_call_id?, name?``.

Reads the parts of the GenAI conventions, OpenAI chat messages, items of the Responses API and
content blocks of Anthropic's form, also mixed. In chat form, ``arguments`` is a JSON string.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from milegpo_plugin.adapters.values import as_name, as_text, parse_arguments, parse_json
from milegpo_plugin.types import JSON, Action, Message, ToolCall, trusted

_CHAT_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
_ROLES: Final = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "tool-call": "assistant",
    "tool-response": "tool",
    "function": "tool",
    "ipython": "tool",
    "developer": "system",
}
_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})
_CALL_PARTS: Final = frozenset({"tool_call", "tool_use", "function_call"})
_RESULT_PARTS: Final = frozenset({"tool_call_response", "tool_result", "function_call_output"})
_KEYED_PARTS: Final = {
    "toolUse": "tool_use",
    "toolResult": "tool_result",
    "functionCall": "function_call",
    "functionResponse": "function_call_output",
}
"""Parts without a type: their one key tells what they are (Bedrock, Gemini)."""

_REASONING_PARTS: Final = frozenset({"reasoning", "thinking"})


def chat_message(
    role: JSON,
    content: JSON = None,
    *,
    tool_calls: Sequence[dict[str, JSON]] = (),
    tool_call_id: JSON = None,
    name: JSON = None,
) -> Message:
    """One message in chat form; keys without a value are left out, ``content`` is always there.

    Content that is neither text nor a list of parts becomes its JSON.
    """
    is_usual = type(role) is str and role in _CHAT_ROLES
    if content is not None and type(content) not in (str, list):
        content = as_text(content)
    message: Message = {"role": role if is_usual else normal_role(role), "content": content}
    if tool_calls:
        message["tool_calls"] = list(tool_calls)
    if tool_call_id:
        message["tool_call_id"] = str(tool_call_id)
    if name and isinstance(name, str):
        message["name"] = name
    return message


def chat_tool_call(call_id: JSON, name: JSON, arguments: JSON) -> dict[str, JSON]:
    """One tool call in chat form."""
    text = as_text(arguments)
    return {
        "id": as_name(call_id),
        "type": "function",
        "function": {"name": as_text(name) or "", "arguments": "{}" if text is None else text},
    }


def normal_role(role: JSON) -> str:
    """The role of the chat form: system, user, assistant or tool."""
    text = str(role or "user").lower()
    return _ROLES.get(text, text)


def read_messages(value: JSON) -> list[Message]:
    """A list of messages (or its JSON) of any shape, in chat form; anything else is no messages."""
    parsed = parse_json(value)
    items = [parsed] if isinstance(parsed, dict) else parsed
    if isinstance(items, str):
        return [chat_message("user", items)]
    if not isinstance(items, list):
        return []
    return [message for item in items for message in _read_message(item)]


def read_instructions(value: JSON) -> list[Message]:
    """System instructions that were passed apart from the history: a text, or parts."""
    parsed = parse_json(value)
    if parsed is None or isinstance(parsed, str):
        text = as_name(value)
        return [chat_message("system", text)] if text else []
    parts = parsed if isinstance(parsed, list) else [parsed]
    return [message for message in _from_parts("system", parts, {}) if message["content"]]


def merge_replies(messages: Iterable[Message]) -> Message | None:
    """The assistant messages of one reply as one message; the Responses API writes one per item."""
    replies = [message for message in messages if message["role"] == "assistant"]
    if len(replies) < 2:
        return replies[0] if replies else None
    texts = [text for reply in replies if (text := reply["content"])]
    calls = [call for reply in replies for call in reply.get("tool_calls", ())]
    content = "\n".join(texts) if all(isinstance(text, str) for text in texts) else texts
    return chat_message("assistant", content or None, tool_calls=calls)


def message_text(message: Message) -> str | None:
    """The text of a message, or None when it has none."""
    content = message["content"]
    if content is None or isinstance(content, str):
        return content or None
    texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(texts) if texts else None


def tool_call_ids(message: Message) -> list[str]:
    """The ids of a message's tool calls, in order."""
    calls = message.get("tool_calls")
    if not calls:
        return []
    if len(calls) > 1:
        return [call["id"] for call in calls if call["id"]]
    only = calls[0]["id"]
    return [only] if only else []


def read_action(reply: Message | None) -> Action:
    """The reply as an action: text, and tool calls with their arguments as objects."""
    if reply is None:
        return Action()
    calls = [_read_tool_call(call) for call in reply.get("tool_calls", ())]
    return trusted(Action, {"text": message_text(reply), "tool_calls": calls})


def _read_tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    arguments = parse_arguments(function["arguments"])
    return trusted(ToolCall, {"id": call["id"], "name": function["name"], "arguments": arguments})


def _read_message(item: JSON) -> list[Message]:
    if isinstance(item, str):
        return [chat_message("user", item)]
    if not isinstance(item, dict):
        return []
    kind = as_name(item.get("type"))
    if "role" not in item and kind in _CALL_PARTS | _RESULT_PARTS | _REASONING_PARTS:
        role = "tool" if kind in _RESULT_PARTS else "assistant"
        return _from_parts(role, [item], {})
    parts = item["parts"] if "parts" in item else item.get("content")
    if not isinstance(parts, list):
        parts = [] if parts is None else [parts]
    return _from_parts(item.get("role"), parts, item)


def _from_parts(role: JSON, parts: Sequence[JSON], item: Mapping[str, Any]) -> list[Message]:
    """One message of the text, other content and tool calls; one of its own for each tool result.

    Results come first: a user turn that carries results and text answers the calls first.
    """
    content: list[JSON] = []
    calls = [_tool_call(call) for call in item.get("tool_calls") or () if isinstance(call, dict)]
    results: list[Message] = []
    reasoning: list[str] = []
    for part in map(_typed_part, parts):
        kind = as_name(part.get("type")) if isinstance(part, dict) else None
        if kind in _CALL_PARTS:
            calls.append(_tool_call(part))
        elif kind in _RESULT_PARTS:
            results.append(_tool_result(part))
        elif kind in _REASONING_PARTS:
            reasoning.append(_part_text(part) or "")
        elif part is not None:
            content.append(part)
    if results and not content and not calls:
        return results
    message = chat_message(
        role,
        _join_content(content),
        tool_calls=calls,
        tool_call_id=item.get("tool_call_id"),
        name=item.get("name"),
    )
    if any(reasoning):
        message["reasoning_content"] = "\n".join(reasoning)
    return [*results, message]


def _typed_part(part: JSON) -> JSON:
    if isinstance(part, dict) and "type" not in part:
        for key, kind in _KEYED_PARTS.items():
            if isinstance(part.get(key), dict):
                return {"type": kind, **part[key]}
    return part


def _tool_call(call: Mapping[str, Any]) -> dict[str, JSON]:
    function = call.get("function")
    owner = function if isinstance(function, Mapping) else call
    arguments = owner["arguments"] if "arguments" in owner else owner.get("input", owner.get("args"))
    return chat_tool_call(_call_id(call), owner.get("name"), arguments)


def _call_id(part: Mapping[str, Any]) -> JSON:
    """The id that a call and its result share; ``id`` may be the item's own."""
    keys = ("call_id", "tool_use_id", "toolUseId", "id")
    return next((part[key] for key in keys if part.get(key)), None)


def _tool_result(part: Mapping[str, Any]) -> Message:
    body = next((part[key] for key in ("response", "result", "output", "content") if key in part), None)
    call_id = part.get("call_id") or part.get("tool_use_id") or part.get("id")
    return chat_message(
        "tool", _join_content(body if isinstance(body, list) else [body]), tool_call_id=call_id
    )


def _join_content(parts: Sequence[JSON]) -> JSON:
    """Text parts as one text; a list of parts as soon as one of them is no text."""
    texts = [_part_text(part) for part in parts]
    if None not in texts:
        return "\n".join(text for text in texts if text is not None) if texts else None
    if len(parts) == 1 and not (isinstance(parts[0], dict) and "type" in parts[0]):
        return as_text(parts[0])
    return [
        part if text is None else {"type": "text", "text": text}
        for part, text in zip(parts, texts, strict=True)
    ]


def _part_text(part: JSON) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or as_name(part.get("type", "text")) not in _TEXT_PARTS | _REASONING_PARTS:
        return None
    return next(
        (part[key] for key in ("content", "text", "thinking") if isinstance(part.get(key), str)), None
    )
