from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from milegpo_plugin.receive import Received, Receiver
from milegpo_plugin.trajectories import ReconstructOptions

TRACES = Path(__file__).parents[1] / "data" / "traces"
PATIENCE_S = 60.0


@pytest.fixture(scope="session")
def traces() -> Path:
    return TRACES


class Running:
    """A receiver that runs in a thread, and what it has written."""

    def __init__(self, folder: Path, idle_s: float) -> None:
        self.told: list[Received] = []
        self.file = folder / "trajectories.jsonl"
        self._stop = threading.Event()
        self._receiver = Receiver(
            folder,
            host="127.0.0.1",
            port=0,
            idle_s=idle_s,
            options=ReconstructOptions(),
            tell=self.told.append,
        )
        self.port = self._receiver.port
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._receiver.run, args=(self._stop,))
        self._thread.start()

    def rollouts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines()]

    def wait(self, count: int) -> list[dict[str, Any]]:
        """The rollouts, once there are ``count`` of them."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.file.exists() and len(self.rollouts()) >= count:
                return self.rollouts()
            time.sleep(0.02)
        raise AssertionError(f"{count} rollouts were not written in {PATIENCE_S:.0f} s")

    def stop(self) -> list[dict[str, Any]]:
        """The rollouts after an orderly end."""
        self._stop.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return self.rollouts() if self.file.exists() else []


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., Running]]:
    """Starts receivers; they are stopped after the test."""
    running: list[Running] = []

    def begin(idle_s: float = 0.3) -> Running:
        running.append(Running(tmp_path / f"live{len(running)}", idle_s))
        return running[-1]

    yield begin
    for item in running:
        item.stop()
