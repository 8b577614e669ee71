"""The facts of the page as JSON, CSV or Parquet, texts as they were recorded."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from milegpo_plugin.errors import InputNotFoundError, MissingDependencyError
from milegpo_plugin.groups import Floats
from milegpo_plugin.report.facts import Facts, Record
from milegpo_plugin.report.text import action_text, observation_text
from milegpo_plugin.report.words import verdict, why_episode, why_move

PARTS: Final = ("graph", "milestone", "step", "episode")


def export_tables(facts: Facts) -> dict[str, list[Record]]:
    """``steps``, ``states`` and ``moves`` of a batch, one record each."""
    return {
        "steps": list(step_records(facts)),
        "states": [record | {"verdict": verdict(record)} for record in facts.nodes],
        "moves": facts.edges,
    }


def step_records(facts: Facts) -> Iterator[Record]:
    """Every step in use with its action, the parts of its advantage, and why."""
    for rollout in range(len(facts.credit.batch.input_K)):
        identity = _rollout_record(facts, rollout)
        other = _other_advantages(facts, rollout)
        for position, index in enumerate(facts.steps_of(rollout)):
            yield (
                identity
                | _step_record(facts, rollout, position, index)
                | {"other_advantage": other[position]}
            )


def write_json(facts: Facts, output: Path) -> list[Path]:
    """One document: settings, figures, what was skipped, and the three tables."""
    credit = facts.credit
    document = {
        "config": credit.config.model_dump(mode="json"),
        "figures": credit.metrics(),
        "skipped": [{"kind": item.kind, "id": item.id, "reason": item.reason} for item in credit.skipped],
        **export_tables(facts),
    }
    output.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY))
    return [output]


def write_csv(facts: Facts, output: Path) -> list[Path]:
    """One file a table, ``NAME.steps.csv`` and so on; lists as JSON."""
    return _write_each(facts, output, _write_csv)


def write_parquet(facts: Facts, output: Path) -> list[Path]:
    """One file a table, ``NAME.steps.parquet`` and so on.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError(
            "parquet needs pyarrow: pip install 'milegpo-plugin[report]', or use --format csv"
        ) from error
    return _write_each(
        facts,
        output,
        lambda path, rows: pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path),
    )


def require_folder(output: Path) -> None:
    """Check that ``output`` can be written.

    Raises:
        InputNotFoundError: its folder does not exist.
    """
    if not output.parent.is_dir():
        raise InputNotFoundError(f"{output.parent}: no such folder; create it, or choose another -o")


def _write_each(facts: Facts, output: Path, write: Callable[[Path, Sequence[Record]], None]) -> list[Path]:
    written = []
    for name, rows in export_tables(facts).items():
        path = output.with_name(f"{output.stem}.{name}{output.suffix}")
        write(path, rows)
        written.append(path)
    return written


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="", errors="backslashreplace") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)


def _cell(value: Any) -> Any:
    return orjson.dumps(value).decode() if isinstance(value, list | dict) else value


def _rollout_record(facts: Facts, rollout: int) -> Record:
    batch, trajectory = facts.credit.batch, facts.trajectory(rollout)
    return {
        "task_id": trajectory.task_id,
        "rollout_id": trajectory.rollout_id,
        "success": bool(batch.success_K[rollout]),
        "score": float(batch.score_K[rollout]),
    }


def _other_advantages(facts: Facts, rollout: int) -> list[float | None]:
    values: Floats | None = None
    if facts.other is not None:
        values = facts.other.advantages(int(facts.credit.batch.input_K[rollout]))
    return [None] * len(facts.steps_of(rollout)) if values is None else list(values.tolist())


def _step_record(facts: Facts, rollout: int, position: int, index: int) -> Record:
    edge = facts.edges[int(facts.credit.graph.edge_S[index])]
    step = facts.step(rollout, index)
    source, target = facts.nodes[edge["source"]], facts.nodes[edge["target"]]
    parts = {name: getattr(facts.parts, f"{name}_S") for name in PARTS}
    return {
        "step": position,
        "state": edge["source_state"],
        "next_state": edge["target_state"],
        "observation": observation_text(step.observation),
        "action": action_text(step.action),
        **{f"{name}_part": None if part is None else float(part[index]) for name, part in parts.items()},
        "advantage": float(facts.parts.advantage_S[index]),
        "why": f"{why_move(edge, source, target, facts.credit.config)} {why_episode(facts, rollout)}".strip(),
    }
