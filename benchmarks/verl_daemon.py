"""Rows a second of the verl daemon beside the stock one, and the cost of credit.

Both turn the same finished rollouts of the real store into a batch; the stock daemon uses Agent
Lightning's own adapter. ``make bench-verl`` runs it; other sizes, in the environment of
``make test-verl``:

``python -m benchmarks.verl_daemon --tasks 16 --rollouts 8 --steps 20``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
import types
from functools import partial
from typing import Any

import numpy as np
import torch
from agentlightning.store.memory import InMemoryLightningStore
from agentlightning.types import LLM, Span
from agentlightning.verl.daemon import AgentModeDaemon

from milegpo_plugin import CreditConfig
from milegpo_plugin.agl.settings import BackendSettings
from milegpo_plugin.agl.verl.daemon import MileGPODaemon

PROMPT, RESPONSE = 1024, 256


def spans_of(rollout_id: str, attempt_id: str, steps: int, dice: random.Random) -> list[Span]:
    """A walk of ``steps`` model calls with token ids, and its reward."""
    trace, spans, place = f"{dice.getrandbits(128):032x}", [], 0
    build = partial(Span.from_attributes, rollout_id=rollout_id, attempt_id=attempt_id, trace_id=trace)
    clock = time.time()
    for number in range(steps):
        action = dice.choice([-1, 1])
        attributes: dict[str, Any] = {
            "gen_ai.request.type": "chat",
            "gen_ai.request.model": "policy",
            "gen_ai.response.id": f"chatcmpl-{dice.getrandbits(64):x}",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": f"room {place} " + "with a view " * 30,
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "left" if action < 0 else "right",
            "gen_ai.completion.0.finish_reason": "stop",
            "prompt_token_ids": [dice.randrange(1000) for _ in range(700)],
            "response_token_ids": [dice.randrange(1000) for _ in range(120)],
        }
        place += action
        span = build(attributes=attributes, name="openai.chat.completion", sequence_id=number + 1)
        span.start_time, span.end_time = clock + number, clock + number + 0.5
        spans.append(span)
    reward = {"agentlightning.reward.0.name": "primary", "agentlightning.reward.0.value": float(place > 0)}
    spans.append(build(attributes=reward, name="agentlightning.annotation", sequence_id=steps + 1))
    spans[-1].start_time = spans[-1].end_time = clock + steps
    return spans


class Proxy:
    """The daemon asks its proxy for an endpoint; nobody calls it here."""

    def is_running(self) -> bool:
        """It has nothing to start."""
        return True

    def as_resource(self, **_: Any) -> LLM:
        """An endpoint that nobody calls."""
        return LLM(endpoint="http://127.0.0.1:1/v1", model="policy")


def build_daemon(daemon_cls: Any, rollouts: int) -> Any:
    """A daemon on a store of its own, with its loop running."""
    daemon = daemon_cls(
        None,
        rollouts,
        train_information={"model": "policy", "temperature": 1.0},
        tokenizer=types.SimpleNamespace(pad_token_id=0),
        mini_batch_size=1,
        pad_token_id=0,
        store=InMemoryLightningStore(thread_safe=True),
        llm_proxy=Proxy(),
        trace_aggregator={"level": "transition"},
    )
    while daemon._internal_loop is None:
        time.sleep(0.01)
    return daemon


async def play(store: InMemoryLightningStore, steps: int) -> None:
    """Finish every queued rollout."""
    dice = random.Random(0)
    while (rollout := await store.dequeue_rollout()) is not None:
        attempt_id = rollout.attempt.attempt_id
        await store.add_many_spans(spans_of(rollout.rollout_id, attempt_id, steps, dice))
        await store.update_attempt(rollout.rollout_id, attempt_id, status="succeeded")


async def read(daemon: Any) -> None:
    """What the daemon does with each finished rollout."""
    ids = list(daemon._task_id_to_original_sample)
    for rollout in await daemon.store.wait_for_rollouts(rollout_ids=ids, timeout=0):
        daemon._completed_rollouts_v0[rollout.rollout_id] = await daemon._validate_data_v1(rollout)


def measure(daemon: Any, tasks: int, steps: int) -> dict[str, float]:
    """Seconds of one batch, by part."""
    samples = {"task": np.array([str(i) for i in range(tasks)], dtype=object)}
    daemon.set_up_data_and_server(samples, ["127.0.0.1:1"])
    run = partial(asyncio.run_coroutine_threadsafe, loop=daemon._internal_loop)
    run(play(daemon.store, steps)).result()
    start = time.perf_counter()
    run(read(daemon)).result()
    middle = time.perf_counter()
    batch, metrics = daemon.get_train_data_batch(PROMPT, RESPONSE, torch.device("cpu"), 1)
    end = time.perf_counter()
    return {
        "rows": len(batch),
        "read_seconds": middle - start,
        "batch_seconds": end - middle,
        "credit_seconds": metrics.get("milegpo/credit_seconds", 0.0),
        "rows_per_second": len(batch) / (end - start),
    }


def main() -> None:
    """Print one JSON object for each daemon."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=16)
    parser.add_argument("--rollouts", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    ours = partial(MileGPODaemon, settings=BackendSettings(credit=CreditConfig.preset("webshop")))
    for name, daemon_cls in (("stock", AgentModeDaemon), ("milegpo", ours)):
        result = measure(build_daemon(daemon_cls, options.rollouts), options.tasks, options.steps)
        print(json.dumps({"daemon": name, **{key: round(value, 3) for key, value in result.items()}}))


if __name__ == "__main__":
    main()
