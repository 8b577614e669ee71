"""All jobs, side by side in processes."""

from __future__ import annotations

import os
import sys
from functools import partial
from multiprocessing import get_context

from benchmarks.ground_truth.jobs import Figures, Job, all_jobs, run_job
from benchmarks.ground_truth.mdps import Floats
from benchmarks.ground_truth.params import Params


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
