"""A day of 10^6 rollouts against what this machine does; writes ``docs/results/scale.md``.

Run it as ``make bench-scale`` or ``python -m benchmarks.scale``. ``--rollouts`` sets the size of the credit
jobs, ``--traced`` that of the traces.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.scale import stages, workload
from benchmarks.scale.page import Measured, page

FILES = 20
WARM_ROLLOUTS = 400
"""A job so small that what it takes is the start of Ray."""


def main() -> None:
    """Measure every stage and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=20_000, help="rollouts of a credit job")
    parser.add_argument("--traced", type=int, default=200, help="rollouts that are traced")
    parser.add_argument("--output", type=Path, default=Path("docs/results/scale.md"))
    options = parser.parse_args()
    console = Console(highlight=False)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="milegpo-scale-") as folder:
        measured = measure(Path(folder), options.rollouts, options.traced, console)
    text = page(measured, machine=f"{os.cpu_count()} cores, {platform.machine()}", load=load)
    options.output.write_text(text, encoding="utf-8")
    console.print(text, markup=False)


def measure(folder: Path, rollouts: int, traced: int, console: Console) -> Measured:
    """All stages, one after another."""
    spans = workload.make_spans(traced)
    trace = workload.write_trace_file(folder / "spans.pb", spans)
    console.print("intake …")
    done = stages.intake(trace, traced)
    console.print("receive …")
    received, held_mib = stages.receive_command(spans, traced, folder / "live")
    done.append(received)
    console.print("credit …")
    done.append(stages.credit_in_memory(2_000))
    small = _files(folder / "small", WARM_ROLLOUTS)
    large = _files(folder / "large", rollouts)
    jobs = []
    for name, paths, count in (("start", small, WARM_ROLLOUTS), ("job", large, rollouts)):
        for engine in ("process", "ray"):
            console.print(f"milegpo credit --engine {engine}, {count} rollouts …")
            output = folder / f"{engine}-{name}{'.jsonl' if engine == 'process' else ''}"
            jobs.append(stages.credit_command(paths, output, count, engine))
    _check_equal(folder / "process-job.jsonl", folder / "ray-job")
    return Measured(done, held_mib, jobs[:2], jobs[2:], stages.sizes(folder / "sizes", trace, traced))


def _files(folder: Path, rollouts: int) -> list[Path]:
    folder.mkdir()
    return workload.write_rollouts(folder, rollouts, FILES)


def _check_equal(one: Path, parts: Path) -> None:
    """Both engines must have written the same lines."""
    there = [line for path in sorted(parts.glob("credit-*")) for line in _lines(path)]
    if sorted(_lines(one)) != sorted(there):
        raise SystemExit("the credit of --engine ray differs from that of one process")


def _lines(path: Path) -> Sequence[bytes]:
    return path.read_bytes().splitlines()


if __name__ == "__main__":
    main()
