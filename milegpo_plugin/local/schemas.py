"""JSON schemas of tool arguments as short sequences of fixed text, choices and free values.

A property with finitely many values becomes a choice; anything else stays a schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, TypeAlias

JsonSchema: TypeAlias = dict[str, Any]
MAX_OPTIONAL: Final = 4
"""Optional properties whose presence is spelled out, 2^k ways; more leave the object a schema."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Text without a choice."""

    text: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several texts."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Free:
    """A JSON value that matches a schema."""

    schema: JsonSchema


Piece: TypeAlias = Fixed | OneOf | Free


def call_alternatives(
    name: str, parameters: JsonSchema | None, begin: str, end: str
) -> Iterator[list[Piece]]:
    """Each way to spell a call of one tool, as pieces in order."""
    opening = f'{begin}{{"name": {_dump(name)}, "arguments": '
    for arguments in object_alternatives(parameters or {}):
        yield merge_fixed([Fixed(opening), *arguments, Fixed("}" + end)])


def object_alternatives(schema: JsonSchema) -> Iterator[list[Piece]]:
    """Each way to spell an object with the given properties, in their declared order."""
    properties = schema.get("properties", {})
    required = set(schema.get("required", ()))
    optional = [name for name in properties if name not in required]
    if len(optional) > MAX_OPTIONAL or not _is_plain_object(schema):
        yield [Free(schema)]
        return
    for count in range(len(optional), -1, -1):
        for present in combinations(optional, count):
            chosen = [name for name in properties if name in required or name in present]
            yield list(_object_pieces(chosen, schema))


def _is_plain_object(schema: JsonSchema) -> bool:
    properties = schema.get("properties", {})
    known = set(schema.get("required", ())) <= properties.keys()
    composed = any(key in schema for key in ("$ref", "anyOf", "oneOf", "allOf", "patternProperties"))
    open_ended = isinstance(schema.get("additionalProperties"), dict)
    return schema.get("type", "object") == "object" and known and not composed and not open_ended


def _object_pieces(names: Sequence[str], schema: JsonSchema) -> Iterator[Piece]:
    yield Fixed("{")
    for index, name in enumerate(names):
        yield Fixed(f"{', ' if index else ''}{_dump(name)}: ")
        yield from _value_pieces(schema["properties"][name], schema)
    yield Fixed("}")


def _value_pieces(schema: JsonSchema, root: JsonSchema) -> list[Piece]:
    values = finite_values(schema, root)
    if values is None:
        definitions: JsonSchema = {key: root[key] for key in ("$defs", "definitions") if key in root}
        return [Free({**definitions, **schema})]
    texts = list(dict.fromkeys(_dump(value) for value in values))
    if all(isinstance(value, str) for value in values):
        return [Fixed('"'), OneOf(tuple(text[1:-1] for text in texts)), Fixed('"')]
    return [OneOf(tuple(texts))]


def finite_values(schema: JsonSchema, root: JsonSchema) -> list[Any] | None:
    """Every value that a schema allows; None when they cannot be listed."""
    schema = _resolve(schema, root)
    if "enum" in schema:
        return list(schema["enum"]) or None
    if "const" in schema:
        return [schema["const"]]
    if schema.get("type") == "boolean":
        return [True, False]
    if schema.get("type") == "null":
        return [None]
    parts = [finite_values(part, root) for part in schema.get("anyOf", ())]
    listed = [value for part in parts if part is not None for value in part]
    return listed if parts and None not in parts else None


def _resolve(schema: JsonSchema, root: JsonSchema) -> JsonSchema:
    reference = schema.get("$ref", "")
    for prefix in ("$defs", "definitions"):
        if reference.startswith(f"#/{prefix}/"):
            target = root.get(prefix, {}).get(reference.rsplit("/", 1)[-1])
            return target if isinstance(target, dict) else schema
    return schema


def merge_fixed(pieces: Sequence[Piece]) -> list[Piece]:
    """Join neighbouring fixed texts; a choice of one is fixed text."""
    merged: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, OneOf) and len(piece.texts) == 1:
            piece = Fixed(piece.texts[0])
        if isinstance(piece, Fixed) and merged and isinstance(merged[-1], Fixed):
            merged[-1] = Fixed(merged[-1].text + piece.text)
        else:
            merged.append(piece)
    return merged


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
