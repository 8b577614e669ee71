"""``python -m benchmarks.ground_truth``: run everything and write tables, CSV files and pictures."""

from __future__ import annotations

import argparse
import csv
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.ground_truth.params import read_params
from benchmarks.ground_truth.results import Results
from benchmarks.ground_truth.running import run_all

COMMAND = "make bench-credit"
OUTPUT = Path(__file__).parents[2] / "docs" / "results"


def main() -> None:
    """Parse the options, run the jobs in processes, write the results."""
    options = _options()
    params = read_params().model_copy(update={"seeds": options.seeds or read_params().seeds})
    found, seconds = run_all(params, options.processes)
    write(Results(params, found), options.output, _cost(seconds))


def _cost(seconds: float) -> str:
    return (
        f"{seconds / 60:.1f} processor minutes on {os.cpu_count()} cores "
        f"({platform.machine()}, Python {platform.python_version()})"
    )


def write(results: Results, folder: Path, cost: str) -> None:
    """Tables as markdown, every figure as CSV, and the pictures."""
    from benchmarks.ground_truth.plots import draw
    from benchmarks.ground_truth.report import tables

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ground_truth_tables.md").write_text(tables(results, COMMAND, cost), encoding="utf-8")
    _write_csv(folder / "ground_truth_learning.csv", results.learning_rows())
    _write_csv(folder / "ground_truth_measured.csv", results.measured_rows())
    _write_csv(folder / "ground_truth_curves.csv", results.curve_rows())
    draw(results, folder)


def _write_csv(file: Path, rows: Iterable[dict[str, Any]]) -> None:
    first, *others = rows
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, first, lineterminator="\n")
        writer.writeheader()
        writer.writerows([first, *others])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ground_truth", description=__doc__)
    parser.add_argument("--seeds", type=int, help="MDPs a family (default: params.yaml)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    return parser.parse_args()


if __name__ == "__main__":
    main()
