"""Event files for TensorBoard, beside ``metrics.jsonl`` and with the same numbers."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from milegpo_plugin.errors import MissingDependencyError
from milegpo_plugin.local.loop import Metrics, Observer

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


def require_tensorboard() -> None:
    """Fail before a run starts, not after its first iteration.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    if importlib.util.find_spec("tensorboard") is None:
        raise MissingDependencyError(
            "train.tensorboard needs the package tensorboard: pip install 'milegpo-plugin[tensorboard]', "
            "or set it to false"
        )


@contextmanager
def event_files(folder: Path, observer: Observer, *, first_step: int) -> Iterator[Observer]:
    """An observer that also writes every number of an iteration; its step is the iteration.

    Args:
        folder: where the event files go.
        observer: gets everything too.
        first_step: TensorBoard drops what earlier files hold from this step on.
    """
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder), purge_step=first_step) as writer:
        yield _EventFiles(writer, observer)


class _EventFiles:
    def __init__(self, writer: SummaryWriter, observer: Observer) -> None:
        self._writer = writer
        self._observer = observer

    def on_rollouts(self, phase: str, done: int, total: int) -> None:
        self._observer.on_rollouts(phase, done, total)

    def on_iteration(self, metrics: Metrics) -> None:
        for name, value in scalars(metrics).items():
            self._writer.add_scalar(name, value, metrics["iteration"])
        self._writer.flush()
        self._observer.on_iteration(metrics)


def scalars(metrics: Metrics) -> dict[str, float]:
    """The known numbers of a line of ``metrics.jsonl``; counts by reason become one name each."""
    flat: dict[str, float] = {}
    for name, value in metrics.items():
        if isinstance(value, dict):
            flat |= {f"{name}/{reason}": float(count) for reason, count in value.items()}
        elif value is not None and name != "iteration":
            flat[name] = float(value)
    return flat
