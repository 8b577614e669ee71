"""Attribute values as instrumentations write them: JSON strings, Python reprs, indexed keys."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from milegpo_plugin.types import JSON

_INTEGERS: Final = {int}
UNPARSED_ARGUMENTS: Final = "unparsed_arguments"
"""The one key of a tool call's arguments when their text is not an object."""


def parse_json(value: JSON) -> JSON:
    """A JSON string as its value; any other value as it is; None when it is not JSON."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None


def parse_repr(value: JSON) -> JSON:
    """A Python repr of plain values (or JSON) as its value; None when it is neither."""
    parsed = parse_json(value)
    if parsed is not None or not isinstance(value, str):
        return parsed
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def parse_cut_array(text: str) -> list[JSON]:
    """The whole items at the start of a JSON array whose end was cut off."""
    decoder = json.JSONDecoder()
    items: list[JSON] = []
    position = text.find("[") + 1
    while 0 < position < len(text):
        try:
            item, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError:
            break
        items.append(item)
        position = _after_comma(text, position)
    return items


def parse_arguments(value: JSON) -> dict[str, JSON]:
    """The arguments of a tool call as an object, whatever form they have.

    Nothing at all is the empty object. Text that is no object is kept under
    ``UNPARSED_ARGUMENTS``: the policy may well have written broken JSON.
    """
    if value is None or value == "" or value == "{}":
        return {}
    parsed = parse_repr(value)
    if isinstance(parsed, dict):
        return {str(key): item for key, item in parsed.items()}
    return {UNPARSED_ARGUMENTS: value}


def as_text(value: JSON) -> str | None:
    """A string as it is, None as None, anything else as compact JSON."""
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def as_integers(value: JSON) -> Sequence[int] | None:
    """A list of integers (or its JSON or repr), or None; an empty list is unknown, so None. Not a copy."""
    items = value if isinstance(value, list) else parse_repr(value)
    if not isinstance(items, list | tuple) or not items:
        return None
    return items if set(map(type, items)) == _INTEGERS else None


def as_count(value: JSON) -> int | None:
    """A count that a server reported, or None."""
    return value if type(value) is int and value >= 0 else None


def as_name(value: JSON) -> str | None:
    """A non-empty string, or None."""
    return value if isinstance(value, str) and value else None


def first_text(attributes: Mapping[str, JSON], *keys: str) -> str | None:
    """The first non-empty string under ``keys``."""
    for key in keys:
        value = attributes.get(key)
        if value and isinstance(value, str):
            return value
    return None


def indexed(attributes: Mapping[str, JSON], prefix: str) -> dict[int, dict[str, JSON]]:
    """``prefix`` + ``index.rest`` keys as {index: {rest: value}}, in rising order of the index."""
    start = len(prefix)
    found: dict[int, dict[str, JSON]] = {}
    for key, value in attributes.items():
        if not key.startswith(prefix):
            continue
        index, _, rest = key[start:].partition(".")
        if index.isdecimal():
            number = int(index)
            if number not in found:
                found[number] = {}
            found[number][rest] = value
    return dict(sorted(found.items()))


def logprob_values(content: JSON) -> list[float] | None:
    """The log-probabilities of OpenAI's ``logprobs.content`` (a list, or its JSON or repr)."""
    items = None if content is None else parse_repr(content)
    if not isinstance(items, list) or not items:
        return None
    values = [item.get("logprob") if isinstance(item, dict) else None for item in items]
    return [float(value) for value in values if value is not None] if None not in values else None


def dig(value: JSON, *path: str | int) -> Any:
    """The value at ``path`` in nested mappings and lists, or None."""
    for step in path:
        if isinstance(value, Mapping) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def _after_comma(text: str, position: int) -> int:
    """The start of the next item of an array, or the end of the text."""
    while position < len(text) and text[position] in ", \n\r\t":
        position += 1
    return position
