"""A platform in one process: the real store and daemon, scripted rollouts, a tiny Qwen2.

Rollouts walk through numbered rooms. Tokens are bytes, so a conversation's prompts are prefixes of
each other, as with a chat template that only appends.
"""

from __future__ import annotations

import asyncio
import importlib.util
import threading
import time
import types
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from agentlightning.store.memory import InMemoryLightningStore
from agentlightning.types import LLM, Span

from milegpo_plugin.agl.settings import BackendSettings
from milegpo_plugin.agl.verl.daemon import MileGPODaemon

PAD, TURN = 0, 1
PROMPT, RESPONSE = 96, 24
REWARD = "agentlightning.reward.0"


def encode(text: str) -> list[int]:
    return [2 + byte for byte in text.encode()]


@dataclass
class Turn:
    """What the agent saw and what the model answered."""

    saw: str
    did: str
    with_ids: bool = True
    status: str = "OK"


@dataclass
class Episode:
    """One scripted rollout. ``fresh_prompts``: every call sees its observation only."""

    turns: list[Turn]
    reward: float | None = None
    status: str = "succeeded"
    fresh_prompts: bool = True
    first_attempt: Episode | None = None
    evicted: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


def spans_of(episode: Episode, rollout_id: str, attempt_id: str) -> list[Span]:
    """What AgentOps and the platform's proxy would have recorded."""
    trace = uuid.uuid4().hex
    build = partial(Span.from_attributes, rollout_id=rollout_id, attempt_id=attempt_id, trace_id=trace)
    spans: list[Span] = []
    history: list[tuple[str, str]] = []
    context: list[int] = []
    clock = time.time()
    for number, turn in enumerate(episode.turns):
        if episode.fresh_prompts:
            history, context = [], []
        history.append(("user", turn.saw))
        prompt = [*context, *encode(turn.saw), TURN]
        response = [*encode(turn.did), TURN]
        attributes: dict[str, Any] = {
            "gen_ai.request.type": "chat",
            "gen_ai.request.model": "policy",
            "gen_ai.response.id": f"chatcmpl-{uuid.uuid4().hex[:8]}",
        }
        for i, (role, text) in enumerate(history):
            attributes |= {f"gen_ai.prompt.{i}.role": role, f"gen_ai.prompt.{i}.content": text}
        if turn.status == "OK":
            attributes |= {
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": turn.did,
                "gen_ai.completion.0.finish_reason": "stop",
            }
        if turn.with_ids and turn.status == "OK":
            attributes |= {"prompt_token_ids": prompt, "response_token_ids": response}
        start = clock + number
        span = build(attributes=attributes, name="openai.chat.completion", sequence_id=number + 1)
        span.start_time, span.end_time = start, start + 0.5
        span.status.status_code = turn.status  # type: ignore[assignment]
        spans.append(span)
        history.append(("assistant", turn.did))
        context = [*prompt, *response]
    if episode.reward is not None:
        attributes = {f"{REWARD}.name": "primary", f"{REWARD}.value": episode.reward}
        span = build(attributes=attributes, name="agentlightning.annotation", sequence_id=len(spans) + 1)
        span.start_time = span.end_time = clock + len(spans)
        spans.append(span)
    return spans


class Runners:
    """Plays the queue of a store by a script ``(task, number of the rollout) -> Episode``."""

    def __init__(
        self, store: InMemoryLightningStore, script: Callable[[dict[str, Any], int], Episode]
    ) -> None:
        self.store = store
        self.script = script
        self.count: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    async def _serve(self) -> None:
        while not self._stop.is_set():
            rollout = await self.store.dequeue_rollout()
            if rollout is None:
                await asyncio.sleep(0.01)
                continue
            data_id = rollout.input["data_id"]
            self.count[data_id] = self.count.get(data_id, -1) + 1
            await self._play(rollout, self.script(rollout.input, self.count[data_id]))

    async def _play(self, rollout: Any, episode: Episode) -> None:
        attempt_id = rollout.attempt.attempt_id
        if episode.first_attempt is not None:
            await self._record(rollout.rollout_id, attempt_id, episode.first_attempt)
            retry = await self.store.start_attempt(rollout.rollout_id)
            attempt_id = retry.attempt.attempt_id
        await self._record(rollout.rollout_id, attempt_id, episode)

    async def _record(self, rollout_id: str, attempt_id: str, episode: Episode) -> None:
        if not episode.evicted:
            await self.store.add_many_spans(spans_of(episode, rollout_id, attempt_id))
        await self.store.update_attempt(rollout_id, attempt_id, status=episode.status)  # type: ignore[arg-type]


class Proxy:
    """Stands for the platform's LLM proxy: the script needs no model."""

    def is_running(self) -> bool:
        return True

    def as_resource(self, **_: Any) -> LLM:
        return LLM(endpoint="http://127.0.0.1:1/v1", model="policy")


class Tokenizer:
    pad_token_id = PAD
    all_special_ids = (PAD, TURN)


@pytest.fixture(scope="session")
def stand_ins() -> Any:
    """The module ``stand_ins.py``, which the script of the end-to-end test imports too."""
    spec = importlib.util.spec_from_file_location("stand_ins", Path(__file__).with_name("stand_ins.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def quick_polls(monkeypatch):
    """The stock daemon polls every 5 seconds."""
    real = asyncio.sleep
    shim = types.SimpleNamespace(**{**vars(asyncio), "sleep": lambda seconds: real(min(seconds, 0.02))})
    monkeypatch.setattr("agentlightning.verl.daemon.asyncio", shim)


@dataclass
class Stage:
    """A daemon on a store that scripted runners serve."""

    store: InMemoryLightningStore
    daemon: Any
    runners: Runners

    def run_batch(self, tasks: Sequence[str], *, is_train: bool = True) -> None:
        samples = {"task": np.array(list(tasks), dtype=object)}
        self.daemon.set_up_data_and_server(samples, ["127.0.0.1:1"], is_train=is_train)
        self.daemon.run_until_all_finished(verbose=False)

    def batch(self, *, prompt: int = PROMPT, response: int = RESPONSE, step: int = 1) -> Any:
        return self.daemon.get_train_data_batch(prompt, response, torch.device("cpu"), step)

    def ask(self, coroutine: Any) -> Any:
        """Run a coroutine of the store where the daemon does."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.daemon._internal_loop).result(timeout=30)


@pytest.fixture
def make_stage(quick_polls) -> Iterator[Callable[..., Stage]]:
    """Build stages; ``daemon_cls`` may be the stock daemon."""
    built: list[Stage] = []

    def build(
        script: Callable[[dict[str, Any], int], Episode],
        *,
        rollouts: int = 4,
        mini_batch: int = 1,
        level: str = "transition",
        daemon_cls: Any = None,
        **settings: Any,
    ) -> Stage:
        store = InMemoryLightningStore(thread_safe=True)
        cls = daemon_cls or partial(MileGPODaemon, settings=BackendSettings(**settings))
        daemon = cls(
            None,
            rollouts,
            train_information={"model": "policy", "temperature": 1.0},
            tokenizer=Tokenizer(),
            mini_batch_size=mini_batch,
            pad_token_id=PAD,
            store=store,
            llm_proxy=Proxy(),
            trace_aggregator={"level": level},
        )
        while daemon._internal_loop is None:
            time.sleep(0.01)
        built.append(Stage(store, daemon, Runners(store, script)))
        return built[-1]

    yield build
    for stage in built:
        stage.runners.close()
        stage.daemon._internal_loop.call_soon_threadsafe(stage.daemon._internal_loop.stop)


@pytest.fixture
def episode() -> type[Episode]:
    return Episode


@pytest.fixture
def turn() -> type[Turn]:
    return Turn


def rooms(actions: str, *, reward: float, **kwargs: Any) -> Episode:
    """A walk: ``l`` and ``r`` lead from room to room, so that walks meet in the same rooms."""
    place, turns = 0, []
    for action in actions:
        turns.append(Turn(f"room {place}", "left" if action == "l" else "right"))
        place += 1 if action == "r" else -1
    return Episode(turns, reward=reward, **kwargs)


WALKS = [("rrr", 1.0), ("rlrrr", 1.0), ("llr", 0.0), ("rll", 0.0)]


@pytest.fixture
def walk() -> Callable[..., Episode]:
    return rooms


@pytest.fixture
def walks() -> Callable[[dict[str, Any], int], Episode]:
    """Four walks of different lengths and outcomes, in turn."""

    def script(task: dict[str, Any], number: int) -> Episode:
        actions, reward = WALKS[number % len(WALKS)]
        return rooms(actions, reward=reward)

    return script


@pytest.fixture
def merged_walks() -> Callable[[dict[str, Any], int], Episode]:
    """The same walks as conversations that only grow."""

    def script(task: dict[str, Any], number: int) -> Episode:
        actions, reward = WALKS[number % len(WALKS)]
        return rooms(actions, reward=reward, fresh_prompts=False)

    return script
