"""The sampler's thread: admits requests into a running batch and hands back completions.

Requests join between passes. While an update waits for the weights nothing new is admitted,
so that no response is drawn from two policies.
"""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

import torch

from milegpo_plugin.errors import TrainingError
from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.prefixes import PrefixCache
from milegpo_plugin.local.sampler import Batch, Completion, Generation, Row

_STOPPED: Final = "the policy server stopped before this request was answered"


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    generation: Generation
    future: Future[Completion] = field(default_factory=Future)


class Engine:
    """Decodes requests from many threads in one batch.

    Args:
        max_batch: most requests decoded together.
        gather_seconds: how long an idle engine waits for more requests after the first.
        prefix_bytes: memory for the states of earlier prompts.
    """

    def __init__(self, policy: Policy, *, max_batch: int, gather_seconds: float, prefix_bytes: int):
        self._policy = policy
        self._max_batch = max_batch
        self._gather_seconds = gather_seconds
        self._prefixes = PrefixCache(prefix_bytes)
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._running: dict[int, _Waiting] = {}
        self._failure: BaseException | None = None
        self._stopping = False
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="policy-sampler", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what runs and end the thread."""
        self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def check(self) -> None:
        """Raise TrainingError when the thread has ended with an error."""
        if self._failure is not None:
            raise TrainingError(f"the policy server's sampler stopped: {self._failure!r}") from self._failure

    def submit(self, generation: Generation) -> Future[Completion]:
        """Queue a request; its future holds TrainingError when the engine ends first.

        Raises:
            TrainingError: the engine has failed.
        """
        self.check()
        waiting = _Waiting(generation)
        self._queue.put(waiting)
        if self._ended:
            self._refuse_queued()
        return waiting.future

    def _run(self) -> None:
        try:
            with torch.inference_mode():
                while not self._stopping:
                    self._serve(self._gather())
        except BaseException as error:
            self._failure = error
        finally:
            self._ended = True
            for item in self._running.values():
                item.future.set_exception(TrainingError(_STOPPED))
            self._refuse_queued()

    def _gather(self) -> list[_Waiting]:
        """Wait for a request, then a little longer for others."""
        found = self._collect([], self._queue.get())
        deadline = time.monotonic() + self._gather_seconds
        while found and len(found) < self._max_batch and not self._stopping:
            try:
                item = self._queue.get(timeout=max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                break
            self._collect(found, item)
        return found

    def _collect(self, found: list[_Waiting], item: _Waiting | None) -> list[_Waiting]:
        if item is None:
            self._stopping = True
        elif item.future.set_running_or_notify_cancel():
            found.append(item)
        return found

    def _serve(self, first: list[_Waiting]) -> None:
        """Decode until the batch is empty, admitting what arrives."""
        with self._policy.gate.sampling():
            self._prefixes.use_version(self._policy.version)
            batch = Batch(self._policy, [])
            self._admit(batch, first)
            while batch.rows:
                batch.step()
                self._deliver(batch.retire())
                self._admit(batch, self._arrived(self._max_batch - len(batch.rows)))

    def _arrived(self, room: int) -> list[_Waiting]:
        found: list[_Waiting] = []
        while len(found) < room and not self._stopping and not self._policy.gate.update_waits:
            try:
                self._collect(found, self._queue.get_nowait())
            except queue.Empty:
                break
        return found

    def _admit(self, batch: Batch, arrived: list[_Waiting]) -> None:
        rows = []
        for item in arrived:
            row = Row(item.generation, self._policy, self._prefixes.longest(item.generation.prompt))
            self._running[id(row)] = item
            rows.append(row)
        self._deliver([row for row in rows if row.done])
        fresh = Batch(self._policy, [row for row in rows if not row.done])
        if fresh.rows:
            fresh.step()
            self._deliver(fresh.retire())
        if fresh.rows:
            batch.merge(fresh)

    def _deliver(self, rows: list[Row]) -> None:
        for row in rows:
            generation, completion = row.generation, row.completion
            if row.prefix is not None:
                self._prefixes.keep(row.prefix)
            record = completion.record(generation.temperature)
            self._policy.records.add(generation.prompt, completion.tokens, record)
            self._running.pop(id(row)).future.set_result(completion)

    def _refuse_queued(self) -> None:
        """Fail what nobody will serve; whoever queues after the end does this for itself."""
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return
            if item is not None and item.future.set_running_or_notify_cancel():
                item.future.set_exception(TrainingError(_STOPPED))
