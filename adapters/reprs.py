"""Python reprs of pydantic objects: ``ChatCompletion(id='…', choices=[Choice(…)])`` → plain values."""

from __future__ import annotations

import ast

from milegpo_plugin.types import JSON


def parse_object_repr(text: JSON) -> JSON:
    """The fields of the object and of the objects in it as mappings; None when it is no such repr."""
    if not isinstance(text, str):
        return None
    try:
        return _plain(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _plain(node: ast.expr) -> JSON:
    """Calls as mappings of their keywords; literals as they are.

    Raises:
        ValueError: there is something else in it.
    """
    if isinstance(node, ast.Call):
        return {keyword.arg or "": _plain(keyword.value) for keyword in node.keywords}
    if isinstance(node, ast.List | ast.Tuple):
        return [_plain(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {
            ast.literal_eval(key): _plain(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }
    return ast.literal_eval(node)
