"""``python -m benchmarks.learning``: train what is missing, then write tables and pictures.

Every finished run is a block of lines in ``docs/results/learning.csv``; an interrupted benchmark goes
on from there. Lines that other settings made are left out and run again.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.learning.params import read_params
from benchmarks.learning.results import Results
from benchmarks.learning.runs import all_jobs, run_missing

COMMAND = "make bench-learning"
OUTPUT = Path(__file__).parents[2] / "docs" / "results"


def main() -> None:
    """Parse the options, run, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument("--seeds", type=int, help="runs of each game and estimator (default: params.yaml)")
    parser.add_argument("--games", nargs="*", help="only these games")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    params = read_params()
    chosen = params.model_copy(update={"seeds": options.seeds or params.seeds})
    results = Results.read(options.output / "learning.csv", params)
    jobs = [job for job in all_jobs(chosen) if job not in results.jobs]
    jobs = [job for job in jobs if not options.games or job.game in options.games]
    for number, (job, metrics) in enumerate(run_missing(params, jobs, options.processes), 1):
        results.add(job, metrics)
        sys.stderr.write(f"{number} of {len(jobs)} runs: {job.game}, {job.estimator}, seed {job.seed}\n")
    results.write_report(options.output, COMMAND)


if __name__ == "__main__":
    main()
