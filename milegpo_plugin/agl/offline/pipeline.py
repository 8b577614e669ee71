"""Files → rows of rollouts → a hash shuffle by task → parts on disk, on Ray Data."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import orjson

from milegpo_plugin.agl.offline.parts import Format, PartWriter
from milegpo_plugin.agl.offline.summary import OfflineCredit, Tally, load_account
from milegpo_plugin.agl.offline.units import ACCOUNT, Row, Unit, UnitReader, decode, plan_units
from milegpo_plugin.config import CreditConfig
from milegpo_plugin.errors import (
    ConfigError,
    CreditError,
    InputNotFoundError,
    MilegpoError,
    MissingDependencyError,
)
from milegpo_plugin.files import plain_size, write_records
from milegpo_plugin.loading import split_target
from milegpo_plugin.trajectories import ReconstructOptions

PART_BYTES: Final = 16 * 2**20
"""Input of a part; its rollouts take about ten times as much memory in the process that credits it."""
_ROWS_OF_A_BLOCK: Final = 256
SKIPPED_FILE: Final = "skipped.jsonl"
SUMMARY_FILE: Final = "summary.json"


def credit_files(
    paths: Sequence[Path],
    folder: Path,
    config: CreditConfig | None = None,
    *,
    logs: Sequence[Path] = (),
    options: ReconstructOptions | None = None,
    whole_traces: bool = False,
    format: Format = "jsonl",
    nodes: bool = False,
    parts: int | None = None,
) -> OfflineCredit:
    """Credit the rollouts of many files; the advantages are those of one :func:`assign_credit` over all.

    Files are read in parallel and rollouts are brought together by task, wherever they are. ``folder``
    gets ``credit-00000.jsonl`` and so on: a task is in one part, and a part is in order of task, rollout
    and step. ``skipped.jsonl`` lists what was left out and why; ``summary.json`` is written last.

    A file or rollout that is broken is left out, as is a task that one process would refuse the batch for
    (two rollouts with the same ids, a reward that is not finite, a state function that fails).

    Args:
        paths: trajectory files, each read by itself; traces.
        folder: a new or empty folder that every worker sees, as the files.
        config: settings of the credit.
        logs: log records of the traces.
        options: how spans become trajectories.
        whole_traces: no rollout has spans in two trace files. They are then read in parallel; by default
            one process reads all of them.
        format: of the parts.
        nodes: also write ``nodes-00000.jsonl`` and so on.
        parts: how many; by default one for each 16 MiB of input.

    Raises:
        MissingDependencyError: Ray Data is not installed.
        InputNotFoundError: a path does not exist.
        ConfigError: the folder holds something, or a setting does not fit.
        TraceError: the files hold no rollout.
        CreditError: no rollout has an outcome, or none can be used; or Ray gave up.
    """
    ray = _import_ray()
    config, options = _with_absolute_function(config or CreditConfig()), options or ReconstructOptions()
    units = plan_units(paths, logs, whole_traces=whole_traces)
    count = parts or max(1, -(-sum(map(plain_size, (*paths, *logs))) // PART_BYTES))
    _prepare(folder)
    reader = UnitReader(config, options, count)
    writer = PartWriter(folder.absolute(), config, format, nodes)
    _start(ray)
    tally = Tally()
    with _no_parts_after_an_error(ray, folder):
        for number, account in _run(ray, units, reader, writer, count):
            (tally.add_unit if number == ACCOUNT else tally.add_part)(account)
        result = tally.summarize(folder, paths, options.rewards)
    _write_summary(result)
    return result


@contextmanager
def _no_parts_after_an_error(ray: Any, folder: Path) -> Iterator[None]:
    """Half a batch must not look like a whole one."""
    try:
        yield
    except ray.exceptions.RayError as error:
        _remove_parts(folder)
        cause = getattr(error, "cause", None) or error
        raise CreditError(f"Ray gave up: {type(cause).__name__}: {cause}") from error
    except MilegpoError:
        _remove_parts(folder)
        raise


def _run(
    ray: Any, units: Sequence[Unit], reader: UnitReader, writer: PartWriter, parts: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The accounts of units (under ``ACCOUNT``) and of parts (under their number), as they come in."""
    rows = ray.data.from_items(
        [{"unit": index} for index in range(len(units))], override_num_blocks=len(units)
    )
    rows = rows.map_batches(_read_units, batch_size=1, fn_kwargs={"units": units, "reader": reader})
    done = rows.groupby("part", num_partitions=parts).map_groups(
        _credit_group, batch_format="pyarrow", fn_kwargs={"writer": writer}
    )
    for row in done.iter_rows():
        yield row["part"], load_account(row["account"])


def _read_units(
    batch: Mapping[str, Any], units: Sequence[Unit], reader: UnitReader
) -> Iterator[dict[str, list[Any]]]:
    """Blocks of rows of one unit."""
    rows: list[Row] = []
    for index in batch["unit"]:
        for row in reader.rows(units[index]):
            rows.append(row)
            if len(rows) == _ROWS_OF_A_BLOCK:
                yield _columns(rows)
                rows = []
    yield _columns(rows)


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in ("part", "rollout")}


def _credit_group(table: Any, writer: PartWriter) -> dict[str, list[Any]]:
    """Write one part, or hand on the accounts of the units."""
    number, lines = table["part"][0].as_py(), table["rollout"].to_pylist()
    if number == ACCOUNT:
        return {"part": [number] * len(lines), "account": lines}
    account = writer.write(number, list(map(decode, lines)))
    return {"part": [number], "account": [orjson.dumps(account)]}


def _import_ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingDependencyError(
            f"--engine ray needs Ray Data: pip install 'milegpo-plugin[ray]' ({error})"
        ) from error
    return ray


def _start(ray: Any) -> None:
    """Join the running cluster (``RAY_ADDRESS``), or start one on this machine that says little."""
    if ray.is_initialized():
        return
    ray.init(include_dashboard=False, log_to_driver=False, logging_level="warning")
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    ray.data.DataContext.get_current().enable_progress_bars = sys.stderr.isatty()


def _with_absolute_function(config: CreditConfig) -> CreditConfig:
    """The settings with a state function that workers find wherever they run."""
    function = config.states.function
    where, name = split_target(function) if isinstance(function, str) else ("", None)
    if not where.endswith(".py"):
        return config
    states = config.states.model_copy(update={"function": f"{Path(where).absolute()}:{name}"})
    return config.model_copy(update={"states": states})


def _prepare(folder: Path) -> None:
    if not folder.absolute().parent.is_dir():
        raise InputNotFoundError(f"{folder.parent}: no such folder; create it, or choose another -o")
    if folder.is_file():
        raise ConfigError(f"-o {folder}: must be a folder with --engine ray, got a file")
    folder.mkdir(exist_ok=True)
    if any(folder.iterdir()):
        raise ConfigError(f"-o {folder}: must be empty, or parts of two jobs would mix: name a new folder")


def _remove_parts(folder: Path) -> None:
    for pattern in ("credit-*", "nodes-*"):
        for path in folder.glob(pattern):
            path.unlink()


def _write_summary(result: OfflineCredit) -> None:
    write_records(result.folder / SKIPPED_FILE, (asdict(item) for item in result.skipped))
    summary = {
        name: getattr(result, name) for name in ("parts", "rollouts", "steps", "metrics", "flags", "notes")
    }
    text = orjson.dumps(summary | {"skipped": len(result.skipped)}, option=orjson.OPT_INDENT_2)
    (result.folder / SUMMARY_FILE).write_bytes(text + b"\n")
