"""Keep the page of a training run up to date while it trains."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from milegpo_plugin.errors import InputNotFoundError
from milegpo_plugin.report.document import ReportSummary
from milegpo_plugin.report.page import write_run_report
from milegpo_plugin.report.run_files import METRICS_FILE, read_run

SECONDS: Final = 5.0


def watch_run(
    run_dir: Path,
    output: Path | None = None,
    *,
    on_write: Callable[[ReportSummary], None],
    seconds: float = SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Write the page whenever ``metrics.jsonl`` changes, until the last planned iteration is done.

    An open page loads itself again every few seconds; the last one written does not.

    Raises:
        InputNotFoundError: ``run_dir`` does not exist.
        TraceError, ConfigError: a file of the run cannot be read.
    """
    if not run_dir.is_dir():
        raise InputNotFoundError(f"{run_dir}: no such folder; name the folder of a training run")
    seen: tuple[int, int] | None = None
    while True:
        stamp = _stamp(run_dir / METRICS_FILE)
        if stamp is not None and stamp != seen:
            seen, finished = stamp, read_run(run_dir).finished
            on_write(write_run_report(run_dir, output, refresh=None if finished else max(1, round(seconds))))
            if finished:
                return
        sleep(seconds)


def _stamp(path: Path) -> tuple[int, int] | None:
    """Size and time of change; None while there is no such file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns
