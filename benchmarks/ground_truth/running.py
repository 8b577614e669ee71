"""All jobs, side by side in processes. Finished jobs are kept, so an interrupted run goes on."""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import time
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from benchmarks.ground_truth.jobs import Figures, Job, all_jobs, run_job
from benchmarks.ground_truth.mdps import Floats
from benchmarks.ground_truth.params import Params

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / "build" / "ground_truth"
_PRESENTATION: Final = frozenset(
    {"__main__", "plots", "report", "results", "running", "statistics", "measures", "diagnostics"}
)


def run_all(params: Params, processes: int, kept: Path = KEPT) -> tuple[dict[Job, Floats | Figures], float]:
    """Every job's result, whatever the order of work, and the processor time of all jobs in seconds.

    Results are kept below ``kept`` under a digest of the code and the parameters that they come from.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    folder = kept / _digest(params)
    folder.mkdir(parents=True, exist_ok=True)
    jobs = all_jobs(params)
    found: dict[Job, tuple[Floats | Figures, float]] = {}
    with get_context("spawn").Pool(processes) as pool:
        for job, outcome in pool.imap_unordered(partial(_run, folder, params.seeds), jobs):
            found[job] = outcome
            sys.stderr.write(f"\r{len(found)} of {len(jobs)} jobs")
    sys.stderr.write("\n")
    return {job: found[job][0] for job in jobs}, sum(seconds for _, seconds in found.values())


def _digest(params: Params) -> str:
    """Of everything that decides the results."""
    digest = hashlib.sha256(params.model_dump_json().encode())
    sources = [*Path(__file__).parent.glob("*.py"), *(ROOT / "milegpo_plugin" / "credit").glob("*.py")]
    for file in [*sorted(sources), ROOT / "milegpo_plugin" / "config.py"]:
        if file.stem not in _PRESENTATION:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _run(folder: Path, seeds: int, job: Job) -> tuple[Job, tuple[Floats | Figures, float]]:
    """The job's result and its processor seconds, from the folder if it is there."""
    file = folder / f"{hashlib.sha256(repr(job).encode()).hexdigest()[:24]}.pickle"
    if file.is_file():
        return job, pickle.loads(file.read_bytes())
    start = time.process_time()
    outcome = run_job(job, seeds), time.process_time() - start
    part = file.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(outcome))
    part.replace(file)
    return job, outcome
