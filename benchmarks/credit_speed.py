"""How fast the credit is: on one training batch, against plain Python, and as batches grow.

Run it as ``python -m benchmarks.credit_speed`` or ``python benchmarks/credit_speed.py``; ``--largest``
sets the size of the largest batch. Every time includes the building of the batch from the trajectory
objects. Times of a busy machine scatter: the minimum on the clock is the figure; the median and the least
processor time stand beside it. Ratios are of processor time, which a busy machine changes least.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.plain_credit import plain_credit
from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit
from milegpo_plugin.types import Trajectory

GROUPS, ROLLOUTS, STEPS, STATES, CHARACTERS = 16, 8, 50, 150, 300
BYTES_A_KIB = 1024


@dataclass(frozen=True, slots=True)
class Times:
    """Repeated times of one piece of work, in seconds: on the clock, and of this process alone."""

    seconds: list[float]
    cpu_seconds: list[float]

    @property
    def best(self) -> float:
        """The minimum."""
        return min(self.seconds)

    @property
    def cpu(self) -> float:
        """The least processor time."""
        return min(self.cpu_seconds)

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.seconds)


def make_batch(groups: int, *, states_given: bool, seed: int = 0) -> list[Trajectory]:
    """Random walks with drift over the rooms of each task; every text is its own object."""
    rng = random.Random(seed)
    batch = []
    for group in range(groups):
        texts = [_room_text(group, room) for room in range(STATES)]
        for number in range(ROLLOUTS):
            steps = [_step(texts[room], states_given) for room in _walk(rng)]
            line = {"task_id": f"task-{group:05d}", "rollout_id": f"rollout-{number}", "steps": steps}
            batch.append(Trajectory.model_validate({**line, "reward": float(rng.random() < 0.5)}))
    return batch


def _room_text(group: int, room: int) -> str:
    text = f"Task {group}. You are in room {room}. There is a door, a table and a key. " * 10
    return f"{text[: CHARACTERS - 8]} #{room:06d}"


def _walk(rng: random.Random) -> Iterator[int]:
    room = 0
    for _ in range(STEPS):
        yield room
        room = min(max(room + rng.choice((-2, -1, 0, 1, 1, 2, 3, 7)), 0), STATES - 1)


def _step(text: str, state_given: bool) -> dict[str, object]:
    own = text[:-1] + text[-1]
    return {"state": own} if state_given else {"observation": [{"role": "tool", "content": own}]}


def measure(work: Callable[[], object], repeats: int) -> Times:
    """Time the work after one unmeasured run when it is repeated."""
    if repeats > 1:
        work()
    times = Times([], [])
    for _ in range(repeats):
        start, cpu_start = time.perf_counter(), time.process_time()
        work()
        times.seconds.append(time.perf_counter() - start)
        times.cpu_seconds.append(time.process_time() - cpu_start)
    return times


def resident_bytes() -> int:
    """Memory that this process holds now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def add_batch_rows(table: Table, config: CreditConfig) -> None:
    """One training batch: states given, states computed, and the plain-Python equations."""
    given, computed = (make_batch(GROUPS, states_given=known) for known in (True, False))
    fast = measure(lambda: assign_credit(given, config), 60)
    full = measure(lambda: assign_credit(computed, config), 60)
    plain = measure(lambda: plain_credit(given, config), 5)
    size = f"{GROUPS} × {ROLLOUTS} × {STEPS}"
    _add_row(table, f"{size}, states given", fast, "< 25 ms", fast.best < 0.025)
    _add_row(table, f"{size}, states computed", full, "< 25 ms", full.best < 0.025)
    _add_row(table, f"{size}, plain Python", plain, "", None)
    ratio = plain.cpu / fast.cpu
    table.add_row("plain Python / this package", f"{ratio:.1f}×", "", "", "≥ 10×", _verdict(ratio >= 10))


def add_scale_rows(table: Table, config: CreditConfig, largest: int) -> None:
    """Batches of growing size; memory is the peak beyond what the input itself holds."""
    rates = []
    sizes = [size for size in (10_000, 100_000, 1_000_000) if size <= largest]
    for size in sizes:
        batch = make_batch(size // (ROLLOUTS * STEPS), states_given=True)
        before = resident_bytes()
        times = measure(lambda batch=batch: assign_credit(batch, config), 3 if size == sizes[-1] else 10)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * BYTES_A_KIB
        rates.append(times.cpu / size)
        bar, met = ("< 6 s", times.best < 6) if size == 1_000_000 else ("", None)
        _add_row(table, f"{size:,} transitions ({rates[-1] * 1e6:.2f} µs each)", times, bar, met)
    growth, memory = max(rates) / min(rates), (peak - before) / 1e9
    table.add_row("slowest / fastest transition", f"{growth:.2f}×", "", "", "≤ 2×", _verdict(growth <= 2))
    table.add_row(
        f"memory beyond the input, {sizes[-1]:,}", f"{memory:.2f} GB", "", "", "< 2 GB", _verdict(memory < 2)
    )


def _add_row(table: Table, name: str, times: Times, bar: str, met: bool | None) -> None:
    columns = (times.best, times.median, times.cpu)
    table.add_row(name, *(f"{seconds * 1e3:.1f} ms" for seconds in columns), bar, _verdict(met))


def _verdict(met: bool | None) -> str:
    return "" if met is None else "yes" if met else "no"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=1_000_000, help="transitions of the largest batch")
    largest = parser.parse_args().largest
    table = Table("credit, full calibration (pcc)", "minimum", "median", "cpu minimum", "bar", "met")
    config = CreditConfig()
    add_batch_rows(table, config)
    add_scale_rows(table, config, largest)
    Console().print(table)


if __name__ == "__main__":
    main()
