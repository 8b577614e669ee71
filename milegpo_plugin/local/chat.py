"""Conversations to prompts, and responses back to messages.

Tool calls are written the Hermes way, ``<tool_call>{"name": ..., "arguments": ...}</tool_call>``,
as Qwen2.5 and many others emit them.
"""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from dataclasses import dataclass
from typing import Any, Final

import jinja2
from transformers import PreTrainedTokenizerBase

from milegpo_plugin.errors import ConfigError
from milegpo_plugin.local.protocol import RequestError
from milegpo_plugin.types import Message

_CALL: Final = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)

_DEFAULT: Final = "default"
_WITH_TOOLS: Final = "tool_use"
"""Names that transformers gives the templates of a tokenizer with several."""

_TINY_TEMPLATE: Final = """\
{%- set window = HISTORY or messages|length %}
{%- set seen = namespace(user=false) %}
{%- for message in messages %}
{%- set first = message.role == 'user' and not seen.user %}
{%- if first %}{% set seen.user = true %}{% endif %}
{%- if first or message.role == 'system' or loop.revindex <= window %}
{{- '<|' ~ message.role ~ '|>' ~ message.content }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>{"name": "' ~ call.function.name ~ '", "arguments": ' ~ call.function.arguments|tojson ~ '}</tool_call>' }}
{%- endfor %}
{%- if message.role == 'assistant' %}{{ '<|end|>' }}{% endif %}
{%- endif %}
{%- endfor %}
{%- if tools %}
{{- '<|tools|>' }}
{%- for tool in tools %}
{{- tool.function.name ~ '(' }}
{%- for name, rule in ((tool.function.parameters or {}).properties or {}).items() %}
{{- name ~ ': ' ~ (rule.enum|join(' | ') if rule.enum and rule.enum|length <= 32 else rule.type) }}
{{- '' if loop.last else ', ' }}
{%- endfor %}
{{- ')' }}
{%- endfor %}
{%- endif %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}
"""

CHATML_TEMPLATE: Final = """\
{%- set head = namespace(text='') %}
{%- if messages[0].role == 'system' %}{% set head.text = messages[0].content %}{% endif %}
{%- if tools %}
{%- set head.text = head.text ~ '\n\n# Tools\n\nCall one function per answer. Functions:\n<tools>' %}
{%- for tool in tools %}{% set head.text = head.text ~ '\n' ~ tool|tojson %}{% endfor %}
{%- set head.text = head.text ~ '\n</tools>\n\nAnswer with:\n<tool_call>\n{"name": <name>, "arguments": <arguments>}\n</tool_call>' %}
{%- endif %}
{%- if head.text %}{{ '<|im_start|>system\n' ~ head.text.strip() ~ '<|im_end|>\n' }}{% endif %}
{%- for message in messages %}
{%- if not (loop.first and message.role == 'system') %}
{{- '<|im_start|>' ~ ('user' if message.role == 'tool' else message.role) ~ '\n' }}
{{- '<tool_response>\n' ~ message.content ~ '\n</tool_response>' if message.role == 'tool' else message.content }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\n{"name": "' ~ call.function.name ~ '", "arguments": ' ~ call.function.arguments|tojson ~ '}\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}
"""


@dataclass(frozen=True, slots=True)
class CallFormat:
    """The text around the JSON object of a tool call."""

    begin: str
    end: str


TINY_CALLS: Final = CallFormat("<tool_call>", "</tool_call>")
HERMES_CALLS: Final = CallFormat("<tool_call>\n", "\n</tool_call>")


def tiny_template(history_messages: int | None) -> str:
    """Compact template of the tiny model: tools come last, only by name and choices.

    With ``history_messages`` only the system prompt, the first user message and that many
    last messages are shown.
    """
    return _TINY_TEMPLATE.replace("HISTORY", str(history_messages or "none"))


def ensure_tool_template(tokenizer: PreTrainedTokenizerBase) -> None:
    """Where a tokenizer's own template cannot show tools, add a ChatML one for conversations with tools.

    Raises:
        ConfigError: there is no template for tools and no ChatML tokens either.
    """
    own = tokenizer.chat_template or {}
    templates = own if isinstance(own, dict) else {_DEFAULT: own}
    if _WITH_TOOLS in templates or "tools" in templates.get(_DEFAULT, ""):
        return
    if not {"<|im_start|>", "<|im_end|>"} <= tokenizer.get_vocab().keys():
        raise ConfigError(
            f"model.path: the tokenizer of {tokenizer.name_or_path} has no chat template with tools and no "
            "ChatML tokens; use an instruct model that knows tools"
        )
    tokenizer.chat_template = {_DEFAULT: CHATML_TEMPLATE, **templates, _WITH_TOOLS: CHATML_TEMPLATE}


def render_prompt(
    tokenizer: PreTrainedTokenizerBase, messages: list[Message], tools: list[dict[str, Any]] | None
) -> list[int]:
    """Token ids of the conversation up to the assistant's turn.

    Raises:
        RequestError: a message is not text, or the template refuses the conversation.
    """
    try:
        text = tokenizer.apply_chat_template(
            [_plain(message) for message in messages],
            tools=tools or None,
            chat_template=_template_name(tokenizer, messages, tools),
            add_generation_prompt=True,
            tokenize=False,
        )
    except jinja2.TemplateError as error:
        raise RequestError(f"the chat template refuses these messages: {error}", param="messages") from error
    return list(tokenizer(text, add_special_tokens=False).input_ids)


def _template_name(
    tokenizer: PreTrainedTokenizerBase, messages: list[Message], tools: list[dict[str, Any]] | None
) -> str | None:
    """The template that a conversation needs, among several; None where there is one."""
    if not isinstance(tokenizer.chat_template, dict) or _WITH_TOOLS not in tokenizer.chat_template:
        return None
    used = any(message.get("tool_calls") or message.get("role") == "tool" for message in messages)
    return _WITH_TOOLS if tools or used else _DEFAULT


def _plain(message: Message) -> Message:
    plain = {**message, "content": _text(message.get("content"))}
    if message.get("role") == "developer":
        plain["role"] = "system"
    if message.get("tool_calls"):
        plain["tool_calls"] = [_parsed_call(call) for call in message["tool_calls"]]
    return plain


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type") == "text" for part in content
    ):
        return "".join(part.get("text") or "" for part in content)
    raise RequestError("message content must be text", param="messages")


def _parsed_call(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with contextlib.suppress(json.JSONDecodeError):
            arguments = json.loads(arguments or "{}")
    return {**call, "function": {**function, "arguments": arguments}}


@dataclass(frozen=True, slots=True)
class Reply:
    """A response as a message: text, tool calls in OpenAI form, or both."""

    content: str | None
    tool_calls: list[dict[str, Any]]


def parse_reply(text: str) -> Reply:
    """Split a response into text and tool calls; a call that is not valid JSON stays text."""
    calls: list[dict[str, Any]] = []

    def take(match: re.Match[str]) -> str:
        found = _read_calls(match.group(1))
        calls.extend(found)
        return "" if found else match.group(0)

    content = _CALL.sub(take, text).strip() if "<tool_call>" in text else text
    return Reply(content or (None if calls else ""), calls)


def _read_calls(body: str) -> list[dict[str, Any]]:
    try:
        value = json.loads(body, strict=False)
    except json.JSONDecodeError:
        return []
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items):
        return []
    return [_openai_call(item["name"], item.get("arguments", {})) for item in items]


def _openai_call(name: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {
        "id": f"call_{uuid.uuid4().hex[:24]}",
        "type": "function",
        "function": {"name": name, "arguments": text},
    }
