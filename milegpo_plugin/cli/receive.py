"""``milegpo receive``: spans in over the network, rollouts out as they end."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from milegpo_plugin.cli import options
from milegpo_plugin.cli.options import Plain, TaskAttribute

if TYPE_CHECKING:
    from rich.console import Console

    from milegpo_plugin.receive import Received


def receive(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder where trajectories.jsonl grows.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="OTLP/HTTP port; 0 takes a free one.")] = 4318,
    host: Annotated[str, typer.Option(help="Interface to listen on; the default is this machine only.")] = (
        "127.0.0.1"
    ),
    idle: Annotated[
        float, typer.Option(min=0.1, help="Quiet seconds after which a rollout is done and written.")
    ] = 30.0,
    task_attribute: TaskAttribute = None,
    plain: Plain = False,
) -> None:
    """Receive spans of any SDK or Collector over OTLP/HTTP, and write rollouts as they end."""
    from milegpo_plugin.receive import FILE_NAME, Receiver

    console = options.make_console(plain)
    summary = _Summary(console)
    receiver = Receiver(
        output,
        host=host,
        port=port,
        idle_s=idle,
        options=options.reconstruct_options(task_attribute, None),
        tell=summary.tell,
    )
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    console.print(f"listening on http://{host}:{receiver.port}; set this before the agent starts:")
    console.print(f"  export OTEL_EXPORTER_OTLP_ENDPOINT=http://{host}:{receiver.port}")
    console.print("  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
    receiver.run(stop)
    summary.close(output / FILE_NAME)


class _Summary:
    """One line for each rollout, and at the end what was left out and why."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rollouts = 0
        self._skipped: Counter[tuple[str, str]] = Counter()

    def tell(self, received: Received) -> None:
        """Print the rollouts of one part."""
        for trajectory in received.result.trajectories:
            self._rollouts += 1
            reward = "no reward" if trajectory.reward is None else f"reward {trajectory.reward:g}"
            flags = ", ".join(trajectory.flags) or "no flags"
            line = f"{trajectory.rollout_id}: {len(trajectory.steps)} steps, {reward}, {flags}"
            self._console.print(line, markup=False)
            if received.went_on:
                self._console.print("  it went on after it had been written: raise --idle", style="yellow")
        self._skipped.update((item.kind, item.reason) for item in received.result.skipped)

    def close(self, path: Path) -> None:
        """Print the totals."""
        for (kind, reason), count in self._skipped.most_common():
            self._console.print(f"left out: {count} × {kind}: {reason}", markup=False)
        written = (
            f"wrote {self._rollouts} rollouts to {path}" if self._rollouts else "no rollout was received"
        )
        self._console.print(written, markup=False)
