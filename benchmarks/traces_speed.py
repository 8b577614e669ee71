"""How fast traces become rollouts, beside the built-in adapter of Agent Lightning 0.3.

Run it as ``python -m benchmarks.traces_speed`` or ``python benchmarks/traces_speed.py``. Both read the
same store spans, rollout after rollout as a trainer does, of long rollouts that AgentOps traced: a session
with ``--calls`` model calls, each with the whole history so far: as far as the attribute limit of the SDK
(128) lets it be, and without a limit. Before anything is timed, both must have found the same token ids. The least processor time of the
repetitions is the figure: times of a busy machine scatter upwards. The last lines show how memory grows
with the number of rollouts. ``--file-gb 1`` also writes a trace file of that size and rebuilds it by
``milegpo trajectories``, with the most memory that the command held.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import count, islice, product
from pathlib import Path
from typing import Any

import orjson
from agentlightning.adapter import TracerTraceToTriplet
from agentlightning.types import Span as StoreSpan
from rich.console import Console
from rich.table import Table

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from milegpo_plugin.spans import spans_from_store
from milegpo_plugin.trajectories import build_trajectories
from milegpo_plugin.types import Trajectory

ATTRIBUTE_LIMIT = 128
NO_LIMIT = 10**6
TOOLS = ("look", "move", "inventory", "take", "open_door")
REQUIRED_RATIO = 10
BATCH_CALLS = 600
MEBIBYTE = 2**20
GIGABYTE = 10**9


def make_rollout(calls: int, number: int = 0, limit: int = ATTRIBUTE_LIMIT) -> list[dict[str, Any]]:
    """The store spans of one rollout in the order in which a store numbers them: as they end."""
    trace_id, start = f"{number + 1:032x}", 1_796_050_000.0 + number * calls
    root_id = _span_id(number, 0)
    spans: list[dict[str, Any]] = []

    def add(name: str, parent: str | None, at: float, until: float, attributes: dict[str, Any]) -> str:
        span_id = root_id if parent is None else _span_id(number, len(spans) + 1)
        spans.append(
            {
                "rollout_id": f"ro-{number:06d}",
                "attempt_id": "at-1",
                "sequence_id": len(spans) + 1,
                "trace_id": trace_id,
                "span_id": span_id,
                "parent_id": parent,
                "name": name,
                "status": {"status_code": "OK", "description": None},
                "attributes": dict(islice(attributes.items(), max(len(attributes) - limit, 0), None)),
                "events": [],
                "links": [],
                "start_time": start + at,
                "end_time": start + until,
                "context": None,
                "parent": None,
                "resource": {"attributes": {"service.name": "agentops"}, "schema_url": ""},
            }
        )
        return span_id

    history: deque[tuple[str, Any]] = deque(maxlen=limit)  # what is older cannot be on a span
    history.extend((("gen_ai.prompt.0.role", "system"), ("gen_ai.prompt.0.content", "You are a player.")))
    history.extend((("gen_ai.prompt.1.role", "user"), ("gen_ai.prompt.1.content", f"Open door {number}.")))
    for call in range(calls):
        is_last = call == calls - 1
        call_id, name = f"call_{number}_{call}", TOOLS[call % len(TOOLS)]
        call_span = add(
            "openai.chat.completion", root_id, call + 0.1, call + 0.5, _call(history, number, call, is_last)
        )
        if not is_last:
            tool = {"tool.name": name, "tool.parameters": "{}", "tool.call.id": call_id}
            add(f"tool_call.{name}", call_span, call + 0.49, call + 0.499, tool)
            _extend(history, 2 * call + 2, _reply(call), call_id, name)
    reward = {"agentlightning.reward.0.name": "primary", "agentlightning.reward.0.value": 1.0}
    add("agentlightning.annotation", root_id, calls, calls, reward)
    add("rollout.session", None, 0.0, calls + 0.1, {"agentops.span.kind": "session"})
    return spans


def _call(history: Iterable[tuple[str, Any]], number: int, call: int, is_last: bool) -> dict[str, Any]:
    functions = {
        f"gen_ai.request.functions.{index}.{key}": f"{tool} {key}"
        for index, tool in enumerate(TOOLS)
        for key in ("name", "description", "parameters")
    }
    return {
        "gen_ai.request.type": "chat",
        "gen_ai.system": "OpenAI",
        "gen_ai.request.model": "policy",
        **dict(history),
        **functions,
        "gen_ai.response.id": f"chatcmpl-{number}-{call}",
        "gen_ai.usage.prompt_tokens": 20 + call,
        "gen_ai.usage.completion_tokens": 8,
        "gen_ai.completion.0.finish_reason": "stop" if is_last else "tool_calls",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": _reply(call),
        "prompt_token_ids": list(range(20 + call)),
        "response_token_ids": [call + token for token in range(8)],
    }


def _extend(history: deque[tuple[str, Any]], place: int, reply: str, call_id: str, name: str) -> None:
    """The assistant turn and its tool result at the end of the history."""
    assistant, tool = f"gen_ai.prompt.{place}.", f"gen_ai.prompt.{place + 1}."
    history.append((assistant + "role", "assistant"))
    history.append((assistant + "content", reply))
    history.append((assistant + "tool_calls.0.id", call_id))
    history.append((assistant + "tool_calls.0.name", name))
    history.append((assistant + "tool_calls.0.arguments", "{}"))
    history.append((tool + "role", "tool"))
    history.append((tool + "content", f"Room {place}. You see a door and a key on the desk."))
    history.append((tool + "tool_call_id", call_id))


def _reply(call: int) -> str:
    return f"Step {call}."


def _span_id(number: int, place: int) -> str:
    return f"{number + 1:08x}{place:08x}"


def read_ours(spans: Sequence[StoreSpan]) -> list[Trajectory]:
    """Store spans → trajectories."""
    return build_trajectories(spans_from_store(spans)).trajectories


def read_theirs(spans: Sequence[StoreSpan]) -> list[Any]:
    """Store spans → triplets."""
    return list(TracerTraceToTriplet().adapt(list(spans)))


def token_ids(spans: Sequence[StoreSpan]) -> tuple[list[Any], list[Any]]:
    """What both found: the ids of prompt and response of every step."""
    (trajectory,) = read_ours(spans)
    ours = [(step.prompt_token_ids, step.response_token_ids) for step in trajectory.steps]
    theirs = [(triplet.prompt["token_ids"], triplet.response["token_ids"]) for triplet in read_theirs(spans)]
    return ours, theirs


def make_batch(calls: int, limit: int) -> list[list[StoreSpan]]:
    """Several rollouts, for a trainer reads many in a row; both adapters agree on each."""
    records = [make_rollout(calls, number, limit) for number in range(max(BATCH_CALLS // calls, 1))]
    batch = [[StoreSpan.model_validate(record) for record in rollout] for rollout in records]
    for spans in batch:
        ours, theirs = token_ids(spans)
        if ours != theirs or len(ours) != calls:
            raise SystemExit(
                f"the two adapters disagree on {calls} calls: {len(ours)} and {len(theirs)} steps"
            )
    return batch


def best_time(work: Callable[[], object], repetitions: int) -> float:
    """Processor seconds of the fastest repetition, with the garbage of the others collected."""
    times = []
    for _ in range(repetitions):
        gc.collect()
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def peak_memory(work: Callable[[], object]) -> int:
    """Bytes that ``work`` holds at most."""
    gc.collect()
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def compare(console: Console, sizes: Sequence[int], repetitions: int) -> bool:
    """Print the times of both; whether every ratio reaches the bar."""
    table = Table(
        "calls",
        "spans",
        "limit",
        "built-in ms",
        "ours ms",
        "built-in spans/s",
        "ours spans/s",
        "ratio",
    )
    reached = True
    for calls, limit in product(sizes, (ATTRIBUTE_LIMIT, NO_LIMIT)):
        batch = make_batch(calls, limit)
        slow = best_time(lambda batch=batch: [read_theirs(spans) for spans in batch], repetitions // 3 or 1)
        fast = best_time(lambda batch=batch: [read_ours(spans) for spans in batch], repetitions)
        reached = reached and slow / fast >= REQUIRED_RATIO
        spans = sum(map(len, batch))
        rates = [f"{spans / seconds:,.0f}" for seconds in (slow, fast)]
        times = [f"{1e3 * seconds / len(batch):.{places}f}" for seconds, places in ((slow, 1), (fast, 2))]
        shown = limit if limit < NO_LIMIT else "none"
        table.add_row(str(calls), str(len(batch[0])), str(shown), *times, *rates, f"{slow / fast:.1f}")
    console.print(table)
    return reached


def measure_memory(console: Console, sizes: Sequence[int], calls: int = 30) -> None:
    """Print what is held at most besides the spans themselves, for batches of ever more rollouts."""
    for rollouts in sizes:
        records = [record for number in range(rollouts) for record in make_rollout(calls, number)]
        spans = [StoreSpan.model_validate(record) for record in records]
        peak = peak_memory(lambda spans=spans: read_ours(spans))
        per_span = f"{peak / len(spans):,.0f} bytes a span"
        console.print(
            f"{rollouts:>5} rollouts of {calls} calls: {peak / MEBIBYTE:7.2f} MiB at most, {per_span}"
        )


def write_trace(path: Path, size: int, calls: int = 30) -> int:
    """Store spans of ever new rollouts as JSON lines, ``size`` bytes of them; the number of spans."""
    spans = 0
    with path.open("wb") as stream:
        numbers = count()
        while stream.tell() < size:
            records = make_rollout(calls, next(numbers))
            stream.write(b"".join(orjson.dumps(record) + b"\n" for record in records))
            spans += len(records)
    return spans


def rebuild_file(console: Console, gigabytes: float) -> None:
    """Print time and peak memory of ``milegpo trajectories`` on a trace file of that size."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl"
        spans = write_trace(trace, round(gigabytes * GIGABYTE))
        command = ["trajectories", str(trace), "-o", str(trace.with_name("trajectories.jsonl")), "--plain"]
        process = subprocess.Popen(
            [sys.executable, "-m", "milegpo_plugin", *command], stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = usage.ru_utime + usage.ru_stime
        if status:
            raise SystemExit(f"milegpo trajectories failed on {trace}")
        console.print(
            f"a file of {trace.stat().st_size / GIGABYTE:.2f} GB with {spans:,} spans: {seconds:.0f} s, "
            f"{spans / seconds:,.0f} spans/s, {usage.ru_maxrss / 1024:,.0f} MiB at most"
        )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, nargs="+", default=[30, 300], help="model calls of a rollout")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--file-gb", type=float, default=0, help="size of a file to rebuild; by default none")
    arguments = parser.parse_args()
    console = Console(highlight=False)
    reached = compare(console, arguments.calls, arguments.repetitions)
    measure_memory(console, [1, 10, 100])
    if arguments.file_gb:
        rebuild_file(console, arguments.file_gb)
    raise SystemExit(None if reached else f"less than {REQUIRED_RATIO} times as fast as the built-in adapter")


if __name__ == "__main__":
    main()
