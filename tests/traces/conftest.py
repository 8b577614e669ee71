from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from milegpo_plugin.spans import read_spans
from milegpo_plugin.types import Skipped, Span

DATA = Path(__file__).parents[1] / "data" / "traces"


@pytest.fixture(scope="session")
def traces() -> Path:
    return DATA


@pytest.fixture(scope="session")
def truth() -> dict[str, Any]:
    return json.loads((DATA / "TRUTH.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def load_capture() -> Callable[[str], list[Span]]:
    """The spans of a capture; its log records are attached where there are any."""
    loaded: dict[str, list[Span]] = {}

    def load(name: str) -> list[Span]:
        if name not in loaded:
            file = DATA / (name if name.endswith(".jsonl") else f"{name}.otlp.jsonl")
            logs = DATA / f"{name}.logs.otlp.jsonl"
            loaded[name] = read_spans([file], [logs] if logs.exists() else [], on_problem=_fail)
        return loaded[name]

    return load


def _fail(problem: Skipped) -> None:
    raise AssertionError(f"unexpected problem: {problem}")


@pytest.fixture(scope="session")
def make_span() -> Callable[..., Span]:
    """A span with sensible defaults; ``at`` is its start and ``until`` its end, in milliseconds."""

    def make(
        name: str,
        attributes: dict[str, Any] | None = None,
        *,
        at: float = 0,
        until: float | None = None,
        trace: str = "",
        parent: Span | None = None,
        events: Sequence[Any] = (),
        **fields: Any,
    ) -> Span:
        make.count += 1  # type: ignore[attr-defined]
        number = make.count  # type: ignore[attr-defined]
        return Span(
            trace_id=parent.trace_id if parent else trace or f"{number:032x}",
            span_id=f"{number:016x}",
            parent_id=parent.span_id if parent else None,
            name=name,
            start_ns=10**18 + round(at * 10**6),
            end_ns=10**18 + round((at + 1 if until is None else until) * 10**6),
            attributes=attributes or {},
            events=tuple(events),
            **fields,
        )

    make.count = 0  # type: ignore[attr-defined]
    return make


@pytest.fixture(scope="session")
def make_call(make_span: Callable[..., Span]) -> Callable[..., Span]:
    """A model call in the GenAI form.

    ``history`` holds ("user", text), ("assistant", text, [(id, name, arguments), …]) and
    ("tool", id, text); ``text`` and ``calls`` are the answer, which is absent when both are None.
    """

    def make(
        history: Sequence[tuple[Any, ...]], text: str | None = None, calls: Any = None, **fields: Any
    ) -> Span:
        extra = fields.pop("attributes", {})
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps([*map(_turn, history)]),
        }
        if text is not None or calls is not None:
            answer = [_turn(("assistant", text, calls or ()))]
            attributes["gen_ai.output.messages"] = json.dumps(answer)
        return make_span(fields.pop("name", "chat m"), {**attributes, **extra}, **fields)

    return make


def _turn(turn: tuple[Any, ...]) -> dict[str, Any]:
    if turn[0] == "tool":
        return {"role": "tool", "parts": [{"type": "tool_call_response", "id": turn[1], "response": turn[2]}]}
    parts = [] if turn[1] is None else [{"type": "text", "content": turn[1]}]
    for call_id, name, arguments in turn[2] if len(turn) > 2 else ():
        parts.append({"type": "tool_call", "id": call_id, "name": name, "arguments": arguments})
    return {"role": turn[0], "parts": parts}
