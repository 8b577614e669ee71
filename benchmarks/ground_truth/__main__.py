"""``python -m benchmarks.ground_truth``: run everything and write tables, figures and JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path

from benchmarks.ground_truth.params import read_params
from benchmarks.ground_truth.results import Results
from benchmarks.ground_truth.running import run_all

COMMAND = "python -m benchmarks.ground_truth"
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
    """``ground_truth.json``, ``ground_truth_tables.md`` and the pictures."""
    from benchmarks.ground_truth.plots import draw
    from benchmarks.ground_truth.report import tables

    folder.mkdir(parents=True, exist_ok=True)
    head = {"command": COMMAND, "cost": cost, "mdps": results.params.seeds}
    (folder / "ground_truth.json").write_text(_compact({**head, **results.as_json()}), encoding="utf-8")
    (folder / "ground_truth_tables.md").write_text(tables(results, COMMAND, cost), encoding="utf-8")
    draw(results, folder)


def _compact(value: object) -> str:
    """JSON with four decimals, one record a line."""
    rounded = json.loads(json.dumps(value), parse_float=lambda text: round(float(text), 4))
    return json.dumps(rounded, indent=None).replace('}, {"', '},\n{"') + "\n"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ground_truth", description=__doc__)
    parser.add_argument("--seeds", type=int, help="MDPs a family (default: params.yaml)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    return parser.parse_args()


if __name__ == "__main__":
    main()
