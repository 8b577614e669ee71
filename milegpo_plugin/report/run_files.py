"""A training run's folder as its files tell it, whichever backend wrote them, finished or not.

Layout::

    config.yaml                     every resolved setting; ``credit`` holds those of the credit
    metrics.jsonl                   one line an iteration
    trajectories/0001.jsonl.gz      rollouts of iteration 1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from milegpo_plugin.config import CreditConfig, read_yaml
from milegpo_plugin.errors import InputNotFoundError, TraceError
from milegpo_plugin.files import read_input
from milegpo_plugin.types import Trajectory

METRICS_FILE: Final = "metrics.jsonl"
CONFIG_FILE: Final = "config.yaml"
REPORT_FILE: Final = "report.html"


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of a run so far. ``planned`` is the number of iterations it was started for."""

    path: Path
    metrics: list[dict[str, Any]]
    credit: CreditConfig
    planned: int | None
    iterations: list[int]  # whose rollouts were kept, ascending

    @property
    def finished(self) -> bool:
        """Whether the last planned iteration is done."""
        return (
            self.planned is not None and bool(self.metrics) and self.metrics[-1]["iteration"] >= self.planned
        )

    def chosen_iterations(self) -> list[int]:
        """The first, a middle and the last iteration whose rollouts were kept."""
        kept = self.iterations
        return sorted({kept[0], kept[len(kept) // 2], kept[-1]}) if kept else []

    def read_trajectories(self, iteration: int) -> list[Trajectory]:
        """The rollouts of an iteration."""
        return read_input([_rollouts_file(self.path, iteration)]).trajectories


def read_run(path: Path) -> Run:
    """Read a run's folder. Iterations without a line in ``metrics.jsonl`` are not finished: left out.

    Raises:
        InputNotFoundError: the folder holds no ``metrics.jsonl``.
        TraceError: a line of it is not a JSON object with an iteration.
        ConfigError: ``config.yaml`` is not understood.
    """
    metrics = read_metrics(path / METRICS_FILE)
    settings: Mapping[str, Any] = read_yaml(path / CONFIG_FILE) if (path / CONFIG_FILE).is_file() else {}
    done = {int(record["iteration"]) for record in metrics}
    return Run(
        path=path,
        metrics=metrics,
        credit=CreditConfig.load(dict(settings.get("credit") or {})),
        planned=(settings.get("train") or {}).get("iterations"),
        iterations=sorted(number for number in done if _rollouts_file(path, number).is_file()),
    )


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Every complete line; one that is still being written is left for later.

    Raises:
        InputNotFoundError: there is no such file.
        TraceError: a line is not a JSON object with an iteration.
    """
    if not path.is_file():
        raise InputNotFoundError(f"{path}: no such file; name the folder of a training run")
    complete, _, _ = path.read_bytes().rpartition(b"\n")
    return [
        _metrics_line(path, number, line)
        for number, line in enumerate(complete.splitlines(), start=1)
        if line
    ]


def _metrics_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise TraceError(f"{path}:{number}: not valid JSON: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("iteration"), int):
        raise TraceError(f"{path}:{number}: must be a JSON object with an iteration, got {line[:80]!r}")
    return record


def _rollouts_file(path: Path, iteration: int) -> Path:
    return path / "trajectories" / f"{iteration:04d}.jsonl.gz"
