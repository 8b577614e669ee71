from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from milegpo_plugin.errors import MissingDependencyError
from milegpo_plugin.local.algorithm import LocalMileGPO
from milegpo_plugin.local.tensorboard import event_files


class Seen:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_rollouts(self, phase: str, done: int, total: int) -> None:
        self.calls.append((phase, done, total))

    def on_iteration(self, metrics: dict[str, Any]) -> None:
        self.calls.append(metrics)


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def test_every_known_number_is_a_scalar_of_its_iteration(tmp_path: Path) -> None:
    metrics = {"iteration": 3, "success": 0.5, "return": None, "rollouts": 8, "skipped": {"no reward": 2}}
    seen = Seen()
    with event_files(tmp_path, seen, first_step=0) as observer:
        observer.on_rollouts("update", 8, 8)
        observer.on_iteration(metrics)
        assert curves(tmp_path) == {
            "success": [(3, 0.5)],
            "rollouts": [(3, 8.0)],
            "skipped/no reward": [(3, 2.0)],
        }
    assert seen.calls == [("update", 8, 8), metrics]


def test_a_resumed_run_replaces_the_steps_that_it_runs_again(tmp_path: Path) -> None:
    for first_step, last, value in ((0, 4, 1.0), (3, 5, 2.0)):
        with event_files(tmp_path, Seen(), first_step=first_step) as observer:
            for step in range(first_step, last + 1):
                observer.on_iteration({"iteration": step, "success": value})
    assert curves(tmp_path)["success"] == [(0, 1.0), (1, 1.0), (2, 1.0), (3, 2.0), (4, 2.0), (5, 2.0)]


def test_without_the_package_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "tensorboard" else found(name, *rest)
    )
    with pytest.raises(MissingDependencyError, match=r"pip install 'milegpo-plugin\[tensorboard\]'"):
        LocalMileGPO({"train": {"tensorboard": True}}, run_dir=tmp_path)
    assert not list(tmp_path.iterdir())
