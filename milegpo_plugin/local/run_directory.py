"""The folder of one training run: config, metrics, checkpoints, trajectories, credit, report.

Layout::

    config.yaml                     every resolved setting
    metrics.jsonl                   one line an iteration
    trajectories/0001.jsonl.gz      rollouts of iteration 1
    credit/0001.jsonl.gz            credit of every step of iteration 1
    checkpoints/last, best          model, tokenizer, optimizer, random state
    tensorboard/                    event files, with ``train.tensorboard``
    platform.log                    the platform's own log
    report.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml

from milegpo_plugin.credit import Credit
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.files import read_records, trajectory_records, write_records
from milegpo_plugin.types import Trajectory


class RunDirectory:
    """Paths and writers of one run.

    Raises:
        ConfigError: the folder already holds a run and ``resume`` is false.
    """

    def __init__(self, path: str | Path, *, resume: bool = False) -> None:
        self.path = Path(path)
        if self.metrics_file.exists() and not resume:
            raise ConfigError(
                f"{self.path}: already holds a run; pass --resume to go on, or another --run-dir"
            )
        for folder in ("trajectories", "credit", "checkpoints"):
            (self.path / folder).mkdir(parents=True, exist_ok=True)

    @property
    def metrics_file(self) -> Path:
        """One JSON line an iteration."""
        return self.path / "metrics.jsonl"

    @property
    def config_file(self) -> Path:
        """The resolved settings."""
        return self.path / "config.yaml"

    @property
    def log_file(self) -> Path:
        """The platform's own log."""
        return self.path / "platform.log"

    @property
    def report_file(self) -> Path:
        """The report page."""
        return self.path / "report.html"

    @property
    def tensorboard_folder(self) -> Path:
        """Event files."""
        return self.path / "tensorboard"

    def checkpoint(self, name: str) -> Path:
        """Folder of a named checkpoint: ``last`` or ``best``."""
        return self.path / "checkpoints" / name

    def write_config(self, values: Mapping[str, Any]) -> None:
        """Keep the resolved settings beside the results."""
        self.config_file.write_text(yaml.safe_dump(dict(values), sort_keys=False), encoding="utf-8")

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Add one line to ``metrics.jsonl``."""
        with self.metrics_file.open("ab") as stream:
            stream.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY))

    def read_metrics(self) -> list[dict[str, Any]]:
        """Every line of ``metrics.jsonl``; empty when there is none."""
        return [record for _, record in read_records(self.metrics_file)] if self.metrics_file.exists() else []

    @property
    def next_iteration(self) -> int:
        """The first iteration without a line in ``metrics.jsonl``."""
        return max((record["iteration"] + 1 for record in self.read_metrics()), default=0)

    def keep_metrics_until(self, iteration: int) -> None:
        """Drop lines of iterations after ``iteration``: they are run again."""
        kept = [record for record in self.read_metrics() if record["iteration"] <= iteration]
        write_records(self.metrics_file, kept)

    def write_rollouts(self, iteration: int, trajectories: Sequence[Trajectory], credit: Credit) -> None:
        """Keep the rollouts of an iteration and the credit of every step."""
        self._write("trajectories", iteration, trajectory_records(trajectories))
        self._write("credit", iteration, credit.step_records())

    def _write(self, folder: str, iteration: int, records: Iterable[Mapping[str, Any]]) -> None:
        write_records(self.path / folder / f"{iteration:04d}.jsonl.gz", records)
