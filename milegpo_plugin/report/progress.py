"""Live progress of a training run in the terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

COLUMNS: Final = (
    ("iter", 6),
    ("success", 9),
    ("return", 8),
    ("steps", 7),
    ("credited", 10),
    ("validation", 12),
    ("seconds", 9),
    ("left", 8),
)
RECENT: Final = 5


class TrainingProgress:
    """An observer that prints one row an iteration above a live bar.

    Use it as a context manager. ``success`` and ``return`` are means over the iteration's
    rollouts, ``steps`` is model calls per rollout, ``credited`` the share of steps whose
    advantage has a part of their own.
    """

    def __init__(self, iterations: int, console: Console) -> None:
        self._iterations = iterations
        self._console = console
        self._started = time.monotonic()
        self._last = self._started
        self._pace: list[float] = []
        self._done = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._phase = self._progress.add_task("starting", total=None)

    def __enter__(self) -> TrainingProgress:
        self._console.print("".join(name.rjust(width) for name, width in COLUMNS), style="bold")
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def on_rollouts(self, phase: str, done: int, total: int) -> None:
        """Move the bar of the running phase."""
        name = f"iteration {min(self._done + 1, self._iterations)}/{self._iterations}: {phase}"
        self._progress.update(self._phase, description=name, completed=done, total=total)

    def on_iteration(self, metrics: Mapping[str, Any]) -> None:
        """Print the row of a finished iteration."""
        now = time.monotonic()
        self._done = int(metrics["iteration"])
        self._pace = [*self._pace[-RECENT + 1 :], now - self._last]
        cells = (
            str(self._done),
            percent(metrics.get("success")),
            decimal(metrics.get("return")),
            decimal(metrics.get("steps"), 1),
            percent(metrics.get("credit/step_credit")),
            percent(metrics.get("validation/success")),
            f"{now - self._last:.0f}",
            self._left(),
        )
        self._last = now
        line = "".join(cell.rjust(width) for cell, (_, width) in zip(cells, COLUMNS, strict=True))
        self._progress.console.print(line, highlight=False)

    def _left(self) -> str:
        """At the pace of the last iterations; validations are part of it."""
        if not self._done:
            return "–"
        seconds = sum(self._pace) / len(self._pace) * (self._iterations - self._done)
        return f"{seconds // 60:.0f}m{seconds % 60:02.0f}s" if seconds >= 60 else f"{seconds:.0f}s"


def percent(value: float | None) -> str:
    """``0.5`` as ``50.0%``; unknown as a dash."""
    return "–" if value is None else f"{100 * value:.1f}%"


def decimal(value: float | None, digits: int = 2) -> str:
    """A number with fixed decimals; unknown as a dash."""
    return "–" if value is None else f"{value:.{digits}f}"
