"""``python -m benchmarks.ground_truth``: run everything and write tables, figures and JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchmarks.ground_truth.jobs import Figures, Job, all_jobs, run_job
from benchmarks.ground_truth.mdps import Floats
from benchmarks.ground_truth.params import Params, read_params
from benchmarks.ground_truth.results import Results

OUTPUT = Path(__file__).parents[2] / "docs" / "results"


def main() -> None:
    """Parse the options, run the jobs in processes, write the results."""
    options = _options()
    params = read_params().model_copy(update={"seeds": options.seeds or read_params().seeds})
    start = time.perf_counter()
    results = Results(params, run_all(params, options.processes))
    write(results, options.output, time.perf_counter() - start, options.processes)


def run_all(params: Params, processes: int) -> dict[Job, Floats | Figures]:
    """Every job's result; the order of work does not matter to it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    jobs = all_jobs(params)
    found: dict[Job, Floats | Figures] = {}
    with get_context("spawn").Pool(processes) as pool:
        for job, result in pool.imap_unordered(partial(_run, params.seeds), jobs):
            found[job] = result
            sys.stderr.write(f"\r{len(found)} of {len(jobs)} jobs")
    sys.stderr.write("\n")
    return {job: found[job] for job in jobs}


def _run(seeds: int, job: Job) -> tuple[Job, Floats | Figures]:
    return job, run_job(job, seeds)


def write(results: Results, folder: Path, seconds: float, processes: int) -> None:
    """``ground_truth.json``, ``ground_truth_tables.md`` and the pictures."""
    from benchmarks.ground_truth.plots import draw
    from benchmarks.ground_truth.report import tables

    folder.mkdir(parents=True, exist_ok=True)
    command = "python -m benchmarks.ground_truth"
    machine = f"{processes} processes, {os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    head = {"command": command, "machine": machine, "seconds": round(seconds), "mdps": results.params.seeds}
    (folder / "ground_truth.json").write_text(_compact({**head, **results.as_json()}), encoding="utf-8")
    (folder / "ground_truth_tables.md").write_text(
        tables(results, command, machine, seconds), encoding="utf-8"
    )
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
