"""What the sampler drew each response from, so that the learner scores it the same way.

Axis suffix: ``_T`` response tokens.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from milegpo_plugin.local.constraints import single_token

Mask = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class SamplingRecord:
    """How one response was drawn.

    ``masks_T`` holds the bitmask of the allowed tokens of each position, None where every
    token was. ``logprobs_T`` are those of the distribution drawn from, under mask and
    temperature; 0 for forced tokens. ``version`` counts the policy updates before it.
    """

    masks_T: tuple[Mask | None, ...]
    logprobs_T: NDArray[np.float32]
    temperature: float
    version: int

    def free_T(self) -> NDArray[np.bool_]:
        """Where the policy had a choice: more than one token was allowed."""
        return np.array([mask is None or single_token(mask) is None for mask in self.masks_T], dtype=np.bool_)


class SamplingRecords:
    """The records since the last :meth:`clear`, found by prompt and response. Thread-safe.

    Two completions with equal prompt and response share a record; the later one is kept.

    Args:
        capacity: most records kept; the oldest make room and are counted in ``evicted``.
    """

    def __init__(self, capacity: int = 200_000):
        self.capacity = capacity
        self.evicted = 0
        self._records: OrderedDict[bytes, SamplingRecord] = OrderedDict()
        self._masks: dict[bytes, Mask] = {}
        self._asked: Counter[bytes] = Counter()
        self._calls: OrderedDict[str, tuple[list[int], list[int]]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._records)

    def add(self, prompt: ArrayLike, response: ArrayLike, record: SamplingRecord) -> None:
        """Keep the record of a completion; equal masks are stored once."""
        with self._lock:
            masks_T = tuple(None if mask is None else self._shared(mask) for mask in record.masks_T)
            key = _key(prompt, response)
            self._records.pop(key, None)
            self._records[key] = SamplingRecord(
                masks_T, record.logprobs_T, record.temperature, record.version
            )
            while len(self._records) > self.capacity:
                self._records.popitem(last=False)
                self.evicted += 1

    def find(self, prompt: ArrayLike, response: ArrayLike) -> SamplingRecord | None:
        """The record of a completion, or None when it was not drawn here since the last clear."""
        with self._lock:
            return self._records.get(_key(prompt, response))

    def name_call(self, call_id: str, prompt: list[int], response: list[int]) -> None:
        """Remember which completion a tool call came from; its id is unique. The oldest make room."""
        with self._lock:
            self._calls[call_id] = (prompt, response)
            while len(self._calls) > self.capacity:
                self._calls.popitem(last=False)

    def find_call(self, call_id: str) -> tuple[list[int], list[int]] | None:
        """Prompt and response of the completion that made a tool call, since the last clear."""
        with self._lock:
            return self._calls.get(call_id)

    def ask(self, prompt: Sequence[int]) -> int:
        """How often this prompt was asked before, since the last clear."""
        with self._lock:
            key = _key(prompt)
            self._asked[key] += 1
            return self._asked[key] - 1

    def clear(self) -> None:
        """Forget everything; the next iteration starts."""
        with self._lock:
            self._records.clear()
            self._masks.clear()
            self._asked.clear()
            self._calls.clear()
            self.evicted = 0

    def _shared(self, mask: Mask) -> Mask:
        return self._masks.setdefault(mask.tobytes(), mask)


def _key(*sequences: ArrayLike) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for sequence in sequences:
        ids = np.asarray(sequence, dtype=np.int64)
        digest.update(len(ids).to_bytes(8, "little") + ids.tobytes())
    return digest.digest()
