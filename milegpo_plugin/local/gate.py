"""One user of the weights at a time, updates first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class WeightGate:
    """Either the sampler runs a batch or the learner updates; a waiting update goes first."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._busy = False
        self._updates = 0

    @property
    def update_waits(self) -> bool:
        """Whether an update waits for the sampler to come to rest."""
        return self._updates > 0

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Hold the weights for a batch of requests."""
        with self._condition:
            self._condition.wait_for(lambda: not self._busy and not self._updates)
            self._busy = True
        try:
            yield
        finally:
            self._release()

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Hold the weights to change, save or replace them."""
        with self._condition:
            self._updates += 1
            self._condition.wait_for(lambda: not self._busy)
            self._updates -= 1
            self._busy = True
        try:
            yield
        finally:
            self._release()

    def _release(self) -> None:
        with self._condition:
            self._busy = False
            self._condition.notify_all()
