"""The trajectories and the credit of every step on disk, for ``milegpo report`` and for a look later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import Credit
from milegpo_plugin.files import trajectory_records, write_records
from milegpo_plugin.types import Skipped, Trajectory


def dump_step(
    folder: Path,
    step: int,
    trajectories: Sequence[Trajectory],
    credit: Credit,
    skipped: Iterable[Skipped],
) -> Path:
    """Write ``step_000012/{trajectories,credit,nodes,skipped}.jsonl``; returns the folder of the step.

    ``credit.yaml`` beside the steps holds the settings, so that
    ``milegpo report step_000012/trajectories.jsonl --config credit.yaml`` shows what was trained on.
    """
    where = folder / f"step_{step:06d}"
    where.mkdir(parents=True, exist_ok=True)
    write_config(folder, credit.config)
    write_records(where / "trajectories.jsonl", trajectory_records(trajectories))
    write_records(where / "credit.jsonl", credit.step_records())
    write_records(where / "nodes.jsonl", credit.node_records())
    write_records(where / "skipped.jsonl", (asdict(item) for item in skipped))
    return where


def write_config(folder: Path, config: CreditConfig) -> None:
    """The credit's settings as ``credit.yaml`` (JSON is YAML)."""
    text = config.model_dump_json(indent=2, exclude_none=True)
    (folder / "credit.yaml").write_text(text + "\n", encoding="utf-8")
