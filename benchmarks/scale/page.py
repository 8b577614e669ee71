"""The measured stages as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.scale.stages import Stage
from benchmarks.scale.workload import GROUP, SPANS, STEPS

ROLLOUTS_A_DAY = 1_000_000
DAY_S = 86_400
NEEDED = ROLLOUTS_A_DAY / DAY_S


@dataclass(frozen=True, slots=True)
class Measured:
    """Stages in their order; MiB of a rollout that is received; both engines on a small and on a large job;
    bytes of a rollout by form.
    """

    stages: list[Stage]
    held_mib: float
    starts: list[Stage]
    jobs: list[Stage]
    sizes: list[tuple[str, float, float]]


def page(measured: Measured, *, machine: str, load: float) -> str:
    """Markdown."""
    return "\n".join(
        [
            "# A day of 10⁶ rollouts",
            "",
            f"`make bench-scale` on {machine}; {load:.1f} processes wanted a core when it began; rates are per second "
            "of processor time. "
            f"A rollout has {STEPS} steps and {SPANS} spans, each model call with the history so far; a group has "
            f"{GROUP} rollouts, spread over the files. Needed: {NEEDED:.1f} rollouts, {NEEDED * STEPS:.0f} steps and "
            f"{NEEDED * SPANS:.0f} spans a second. [docs/scale.md](../scale.md) says what follows from it.",
            "",
            *_stage_table(measured),
            "",
            *_job_table(measured),
            "",
            *_size_table(measured.sizes),
            "",
        ]
    )


def marginal(start: Stage, job: Stage) -> Stage:
    """The job without what the small job takes."""
    return replace(
        job,
        rollouts=job.rollouts - start.rollouts,
        cpu_s=job.cpu_s - start.cpu_s,
        clock_s=job.clock_s - start.clock_s,
    )


def _stage_table(measured: Measured) -> list[str]:
    engines = [marginal(start, job) for start, job in zip(measured.starts, measured.jobs, strict=True)]
    return [
        "| stage | rollouts/s | steps/s | spans/s | × needed | processor hours a day | memory, MiB |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *map(_stage_row, (*measured.stages, *engines)),
        "",
        "The last two are without their start. Memory is of all processes together, where it was looked at; the "
        f"receiver held {measured.held_mib * 1024:,.0f} KiB for each rollout that was not done.",
    ]


def _stage_row(stage: Stage) -> str:
    rate = stage.rollouts_a_cpu_second
    spans = f"{rate * SPANS:,.0f}" if stage.traced else ""
    memory = "" if stage.memory_mib is None else f"{stage.memory_mib:,.0f}"
    hours = ROLLOUTS_A_DAY / rate / 3600
    times = f"{rate / NEEDED:,.0f} | {hours:.2f}"
    return f"| {stage.name} | {rate:,.0f} | {rate * STEPS:,.0f} | {spans} | {times} | {memory} |"


def _job_table(measured: Measured) -> list[str]:
    one, ray = measured.jobs
    return [
        "| job, start included | rollouts | seconds on the clock | processor seconds | memory, MiB |",
        "|---|---:|---:|---:|---:|",
        *map(_job_row, (*measured.starts, *measured.jobs)),
        "",
        f"One process / Ray on the clock with {one.rollouts:,} rollouts: {one.clock_s / ray.clock_s:.2f}×. Both "
        "wrote the same lines.",
    ]


def _job_row(job: Stage) -> str:
    numbers = f"{job.rollouts:,} | {job.clock_s:.0f} | {job.cpu_s:.0f} | {job.memory_mib:,.0f}"
    return f"| {job.name} | {numbers} |"


def _size_table(sizes: Sequence[tuple[str, float, float]]) -> list[str]:
    rows = [
        "| form | bytes a rollout | GB a day | gzipped, GB a day |",
        "|---|---:|---:|---:|",
    ]
    for name, plain, packed in sizes:
        rows.append(
            f"| {name} | {plain:,.0f} | {plain * ROLLOUTS_A_DAY / 1e9:,.1f} | {packed * ROLLOUTS_A_DAY / 1e9:,.1f} |"
        )
    return [*rows, "", "The texts are made up and repeat more than real ones, so they shrink more."]
