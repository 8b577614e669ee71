"""Rollouts of 20 steps as trajectory files, and as spans of a client that follows the GenAI conventions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from milegpo_plugin.files import trajectory_records, write_records
from milegpo_plugin.types import Trajectory

STEPS: Final = 20
GROUP: Final = 8
SPANS: Final = 2 * STEPS + 1
ROOMS, CHARACTERS, TOKENS, PROMPT_TOKENS = 60, 300, 60, 90
EXPORT_BATCH: Final = 512
"""Spans of one request of the SDK's batch processor."""


def write_rollouts(folder: Path, rollouts: int, files: int, *, tokens: bool = False) -> list[Path]:
    """Trajectory files; the rollouts of a group are spread over all of them."""
    paths = [folder / f"rollouts-{number:03d}.jsonl" for number in range(files)]
    for number, path in enumerate(paths):
        chosen = (make_rollout(index, tokens=tokens) for index in range(number, rollouts, files))
        write_records(path, trajectory_records(chosen))
    return paths


def make_rollout(index: int, *, tokens: bool = False) -> Trajectory:
    """A random walk with drift; ``tokens`` adds ids and log-probabilities as a trainer needs them."""
    group, rng = index // GROUP, random.Random(index)
    steps = [_step(group, room, number, rng if tokens else None) for number, room in enumerate(_walk(rng))]
    line = {"task_id": f"task-{group:07d}", "rollout_id": f"rollout-{index:08d}", "steps": steps}
    return Trajectory.model_validate({**line, "reward": float(rng.random() < 0.5)})


def _walk(rng: random.Random) -> Iterator[int]:
    room = 0
    for _ in range(STEPS):
        yield room
        room = min(max(room + rng.choice((-1, 0, 1, 1, 2, 3)), 0), ROOMS - 1)


def room_text(group: int, room: int) -> str:
    """What the agent sees, 300 characters."""
    text = f"Task {group}. You are in room {room}. There is a door, a table and a key. " * 10
    return f"{text[: CHARACTERS - 5]} #{room:03d}"


def _step(group: int, room: int, number: int, rng: random.Random | None) -> dict[str, Any]:
    call = {"id": f"call_{number}", "name": "go", "arguments": {"direction": "north"}}
    step: dict[str, Any] = {
        "observation": [{"role": "tool", "tool_call_id": call["id"], "content": room_text(group, room)}],
        "action": {"text": None, "tool_calls": [call]},
    }
    if rng is None:
        return step
    prompt = [rng.randrange(150_000) for _ in range(PROMPT_TOKENS * (number + 1))]
    reply = [rng.randrange(150_000) for _ in range(TOKENS)]
    return step | {
        "prompt_token_ids": prompt,
        "response_token_ids": reply,
        "logprobs": [rng.gauss(-1.0, 0.3) for _ in reply],
    }


def make_spans(rollouts: int) -> list[ReadableSpan]:
    """The spans of the Python SDK in the order in which they end, 41 a rollout."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": "agent"}))
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("benchmarks.scale")
    for index in range(rollouts):
        _play(tracer, index)
    return list(memory.get_finished_spans())


def _play(tracer: Any, index: int) -> None:
    group, rng = index // GROUP, random.Random(index)
    history: list[dict[str, Any]] = [
        _message("user", {"type": "text", "content": f"Find the key of house {group}."})
    ]
    with tracer.start_as_current_span("invoke_agent player") as run:
        run.set_attribute("gen_ai.operation.name", "invoke_agent")
        run.set_attribute("gen_ai.conversation.id", f"rollout-{index:08d}")
        for number, room in enumerate(_walk(rng)):
            call_id = f"call_{index}_{number}"
            call = {"type": "tool_call", "id": call_id, "name": "go", "arguments": {"direction": "north"}}
            with tracer.start_as_current_span("chat policy") as span:
                span.set_attribute("gen_ai.operation.name", "chat")
                span.set_attribute("gen_ai.request.model", "policy")
                span.set_attribute("gen_ai.input.messages", json.dumps(history))
                span.set_attribute("gen_ai.output.messages", json.dumps([_message("assistant", call)]))
            answer = room_text(group, room)
            with tracer.start_as_current_span("execute_tool go") as span:
                span.set_attribute("gen_ai.operation.name", "execute_tool")
                span.set_attribute("gen_ai.tool.name", "go")
                span.set_attribute("gen_ai.tool.call.id", call_id)
                span.set_attribute("gen_ai.tool.call.result", answer)
            history.append(_message("assistant", call))
            history.append(
                _message("tool", {"type": "tool_call_response", "id": call_id, "response": answer})
            )
        reward = {"gen_ai.evaluation.name": "won", "gen_ai.evaluation.score.value": float(rng.random() < 0.5)}
        run.add_event("gen_ai.evaluation.result", reward)


def _message(role: str, part: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": [part]}


def batches(spans: Sequence[ReadableSpan]) -> Iterator[Sequence[ReadableSpan]]:
    """The spans as the batch processor would export them."""
    for start in range(0, len(spans), EXPORT_BATCH):
        yield spans[start : start + EXPORT_BATCH]


def write_trace_file(path: Path, spans: Sequence[ReadableSpan]) -> Path:
    """OTLP protobuf requests with length prefixes."""
    with path.open("wb") as stream:
        for batch in batches(spans):
            request = encode_spans(batch).SerializeToString()
            stream.write(_varint(len(request)) + request)
    return path


def _varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
