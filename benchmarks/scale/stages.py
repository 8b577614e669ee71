"""The work of each stage, with processor time, time on the clock and memory.

Processor time is that of all processes of the stage; memory is the highest sum of their proportional
shares (PSS), looked at twice a second. Work in this process is repeated, and the least counts.
"""

from __future__ import annotations

import gc
import gzip
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan

from benchmarks.scale import workload
from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit
from milegpo_plugin.files import read_spans
from milegpo_plugin.spans import iter_items
from milegpo_plugin.streams import outline, rebuild_in_parts
from milegpo_plugin.trajectories import ReconstructOptions, build_trajectories
from milegpo_plugin.types import Skipped

LOOK_S = 0.5
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Stage:
    """What was done, in how long; memory is None where it was not looked at; ``traced`` work is on spans."""

    name: str
    rollouts: int
    cpu_s: float
    clock_s: float
    memory_mib: float | None = None
    traced: bool = False

    @property
    def rollouts_a_cpu_second(self) -> float:
        """What one core does when it does nothing else."""
        return self.rollouts / self.cpu_s


def best_of(name: str, rollouts: int, work: Callable[[], object], *, traced: bool, repeats: int = 3) -> Stage:
    """The repetition with the least processor time."""
    times = []
    for _ in range(repeats):
        gc.collect()
        clock, cpu = time.perf_counter(), time.process_time()
        work()
        times.append((time.process_time() - cpu, time.perf_counter() - clock))
    return Stage(name, rollouts, *min(times), traced=traced)


def intake(path: Path, rollouts: int) -> list[Stage]:
    """Spans of a file: read, rebuilt from memory, and streamed rollout by rollout."""
    problems: list[Skipped] = []
    spans = read_spans([path], on_problem=problems.append)
    options = ReconstructOptions()
    found = build_trajectories(spans, options)
    if len(found.trajectories) != rollouts or problems:
        raise SystemExit(
            f"{len(found.trajectories)} of {rollouts} rollouts were rebuilt; problems: {problems[:1]}"
        )

    def stream() -> None:
        items = iter_items([path], on_problem=problems.append)
        rebuild_in_parts(items, options, on_problem=problems.append, each=outline)

    def read() -> None:
        read_spans([path], on_problem=problems.append)

    def rebuild() -> None:
        build_trajectories(spans, options)

    return [
        best_of("read spans of a file", rollouts, read, traced=True),
        best_of("rebuild rollouts from spans in memory", rollouts, rebuild, traced=True),
        best_of("file larger than memory → rollouts", rollouts, stream, traced=True),
    ]


def credit_in_memory(rollouts: int) -> Stage:
    """The credit alone, of trajectory objects."""
    batch = [workload.make_rollout(index) for index in range(rollouts)]
    return best_of(
        "credit of rollouts in memory", rollouts, lambda: assign_credit(batch, CreditConfig()), traced=False
    )


def credit_command(paths: Sequence[Path], output: Path, rollouts: int, engine: str) -> Stage:
    """``milegpo credit`` from start to exit, results on disk."""
    command = ["credit", *map(str, paths), "-o", str(output), "--engine", engine, "--plain"]
    watched = Watched([sys.executable, "-m", "milegpo_plugin", *command])
    watched.wait()
    return watched.stage(f"`milegpo credit --engine {engine}`, files to files", rollouts)


def receive_command(spans: Sequence[ReadableSpan], rollouts: int, folder: Path) -> tuple[Stage, float]:
    """``milegpo receive`` behind the exporter of the Python SDK, on loopback; its own time only.

    Also the memory of a rollout in flight, in MiB: all of them are held at the end of the sending.
    """
    command = ["receive", "-o", str(folder), "--port", "0", "--idle", "2", "--plain"]
    watched = Watched([sys.executable, "-u", "-m", "milegpo_plugin", *command], stdout=subprocess.PIPE)
    first = watched.process.stdout.readline().decode()
    address = re.search(r"http://[\d.]+:\d+", first)
    if address is None:
        raise SystemExit(f"milegpo receive did not start: {first}")
    watched.look()
    idle_s, idle_mib = watched.cpu_s, watched.memory_mib
    start = time.perf_counter()
    exporter = OTLPSpanExporter(endpoint=f"{address[0]}/v1/traces")
    for batch in workload.batches(spans):
        exporter.export(batch)
    sent = time.perf_counter() - start
    watched.look()
    written = folder / "trajectories.jsonl"
    while not written.exists() or count_lines(written) < rollouts:
        watched.look()
        time.sleep(LOOK_S)
    watched.look()
    watched.process.terminate()
    watched.process.communicate(timeout=60)
    name, cpu_s = "receive over OTLP/HTTP → rollouts", watched.cpu_s - idle_s
    stage = Stage(name, rollouts, cpu_s, sent, watched.memory_mib, traced=True)
    return stage, (watched.memory_mib - idle_mib) / rollouts


def count_lines(path: Path) -> int:
    """Lines of a file."""
    with path.open("rb") as stream:
        return sum(1 for _ in stream)


class Watched:
    """A command, with the processor time and the memory of all its processes."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        self._start = time.perf_counter()
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
        options.setdefault("stdout", subprocess.DEVNULL)
        self.process = psutil.Popen(command, env=environment, stderr=subprocess.DEVNULL, **options)
        self._cpu: dict[int, float] = {}
        self.memory_mib = 0.0

    @property
    def cpu_s(self) -> float:
        """Of all processes, as far as they were seen."""
        return sum(self._cpu.values())

    def look(self) -> None:
        """Note what every process has used and holds."""
        total = 0
        for member in (self.process, *self.process.children(recursive=True)):
            try:
                times = member.cpu_times()
                self._cpu[member.pid] = times.user + times.system
                total += member.memory_full_info().pss
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        self.memory_mib = max(self.memory_mib, total / MEBIBYTE)

    def wait(self) -> None:
        """Until the command has ended; it must succeed."""
        while self.process.poll() is None:
            self.look()
            time.sleep(LOOK_S)
        if self.process.returncode:
            raise SystemExit(f"{' '.join(self.process.args)} failed with {self.process.returncode}")

    def stage(self, name: str, rollouts: int) -> Stage:
        """What it took."""
        return Stage(name, rollouts, self.cpu_s, time.perf_counter() - self._start, self.memory_mib)


def sizes(folder: Path, trace: Path, rollouts: int) -> list[tuple[str, float, float]]:
    """Bytes of a rollout in each form, plain and gzipped."""
    folder.mkdir()
    plain = workload.write_rollouts(folder, 64, 1)[0]
    plain = plain.rename(folder / "plain.jsonl")
    tokens = workload.write_rollouts(folder, 64, 1, tokens=True)[0]
    credit = folder / "credit.jsonl"
    subprocess.run(
        [sys.executable, "-m", "milegpo_plugin", "credit", str(plain), "-o", str(credit), "--plain"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    named = (
        ("spans, OTLP protobuf", trace, rollouts),
        ("trajectory JSONL", plain, 64),
        ("trajectory JSONL with token ids", tokens, 64),
        ("credit JSONL", credit, 64),
    )
    return [(name, *_bytes_of(path, count)) for name, path, count in named]


def _bytes_of(path: Path, rollouts: int) -> tuple[float, float]:
    content = path.read_bytes()
    return len(content) / rollouts, len(gzip.compress(content, 6)) / rollouts
