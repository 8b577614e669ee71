"""What `milegpo quickstart` learns, over seeds: run it, read its metrics, write the table and the curves.

Run it as ``make bench-quickstart``. A seed whose run directory is complete is not run again.
Success is that of held-out houses, sampled at temperature 1. Memory is the highest sum over all
processes of a run of what only they hold (USS), looked at every three seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import psutil
from rich.console import Console

MEBIBYTE = 2**20
PARTS = ("agent", "platform", "credit", "update", "validation")
HEADINGS = ("seed", "first", "best", "last", "minutes", *PARTS, "memory, MiB")


@dataclass(frozen=True, slots=True)
class Run:
    """One seed: validation success, minutes of training, shares of that time, highest memory."""

    seed: int
    first: float
    best: float
    last: float
    minutes: float
    agent: float
    platform: float
    credit: float
    update: float
    validation: float
    peak_mib: float


def main() -> None:
    """Run the seeds that are missing and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--runs", type=Path, default=Path("runs/bench-quickstart"))
    parser.add_argument("--output", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    console = Console()
    runs, curves = [], []
    for seed in range(options.seeds):
        folder = options.runs / f"seed-{seed}"
        if not (folder / "peak_mib").exists():
            console.print(f"seed {seed}")
            train(seed, folder)
        metrics = read_metrics(folder)
        runs.append(summarise(seed, metrics, float((folder / "peak_mib").read_text(encoding="utf-8"))))
        curves.append(
            [(m["iteration"], m["validation/success"]) for m in metrics if "validation/success" in m]
        )
    options.output.mkdir(parents=True, exist_ok=True)
    table = to_markdown(runs)
    (options.output / "quickstart.md").write_text(table, encoding="utf-8")
    plot(curves, options.output / "quickstart.png")
    console.print(table, markup=False, highlight=False)


def train(seed: int, folder: Path) -> None:
    """One run of the command as a user types it; keeps its highest memory beside its metrics."""
    command = ["-m", "milegpo_plugin", "quickstart", "--seed", str(seed), "--run-dir", str(folder)]
    resume = ["--resume"] if (folder / "checkpoints").exists() else []
    process = psutil.Popen([sys.executable, *command, *resume, "--no-open", "--plain"])
    peak = 0
    while process.poll() is None:
        peak = max(peak, memory(process))
        time.sleep(3)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    (folder / "peak_mib").write_text(f"{peak / MEBIBYTE:.0f}", encoding="utf-8")


def memory(process: psutil.Process) -> int:
    """Bytes that a process and its descendants hold for themselves."""
    total = 0
    for member in (process, *process.children(recursive=True)):
        try:
            total += member.memory_full_info().uss
        except psutil.NoSuchProcess:
            continue
    return total


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """The records of ``metrics.jsonl``, in order."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def summarise(seed: int, metrics: Sequence[dict[str, float]], peak_mib: float) -> Run:
    """One row of the table."""
    success = [m["validation/success"] for m in metrics if "validation/success" in m]
    total = metrics[-1]["seconds/total"]

    def share(part: str) -> float:
        return sum(m.get(f"seconds/{part}", 0.0) for m in metrics) / total

    agent, collect = share("agent"), share("collect")
    rest = share("credit"), share("update"), share("validation")
    best = max(success)
    return Run(seed, success[0], best, success[-1], total / 60, agent, collect - agent, *rest, peak_mib)


def to_markdown(runs: Sequence[Run]) -> str:
    """The table of all seeds, with medians, and how it was made."""
    rows = [f"| {' | '.join(HEADINGS)} |", "|" + "---:|" * len(HEADINGS)]
    rows += [_row(str(run.seed), astuple(run)[1:]) for run in runs]
    columns = list(zip(*(astuple(run)[1:] for run in runs), strict=True))
    rows.append(_row("median", [statistics.median(column) for column in columns]))
    rise = statistics.median(run.last - run.first for run in runs)
    fall = statistics.median(run.best - run.last for run in runs)
    return "\n".join(
        [
            "# The quickstart over seeds",
            "",
            f"`make bench-quickstart`, {os.cpu_count()} CPU cores, no GPU. Validation success of houses that are "
            "never trained on; the parts are shares of the training time, the platform's is what collecting "
            "takes beyond the agents' own time.",
            "",
            *rows,
            "",
            f"Median rise from first to last: {rise:+.3f}. Median fall from best to last: {fall:.3f}.",
            "",
            "![Validation success over iterations, one line a seed](quickstart.png)",
            "",
        ]
    )


def _row(name: str, values: Sequence[float]) -> str:
    success, minutes, shares, peak = values[:3], values[3], values[4:-1], values[-1]
    cells = [name, *(f"{value:.3f}" for value in success), f"{minutes:.1f}"]
    cells += [f"{100 * value:.1f}%" for value in shares]
    return f"| {' | '.join([*cells, f'{peak:.0f}'])} |"


def plot(curves: Sequence[Sequence[tuple[float, float]]], path: Path) -> None:
    """Validation success over iterations, one line a seed."""
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for seed, curve in enumerate(curves):
        axes.plot(*zip(*curve, strict=True), marker="o", label=f"seed {seed}")
    axes.set(xlabel="iteration (64 rollouts each)", ylabel="success on held-out houses", ylim=(0, 1))
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    main()
