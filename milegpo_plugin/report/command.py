"""What ``milegpo report`` does: a page, an export or a picture, of a batch or of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.files import read_input
from milegpo_plugin.report.document import ReportSummary
from milegpo_plugin.report.export import require_folder, write_csv, write_json, write_parquet
from milegpo_plugin.report.facts import Facts
from milegpo_plugin.report.page import batch_facts, write_report, write_run_report
from milegpo_plugin.report.picture import write_png
from milegpo_plugin.report.watch import watch_run
from milegpo_plugin.trajectories import ReconstructOptions

EXPORTS: Final[Mapping[str, Callable[[Facts, Path], list[Path]]]] = {
    "json": write_json,
    "csv": write_csv,
    "parquet": write_parquet,
}
FORMATS: Final = ("html", *EXPORTS, "png")

Tell = Callable[[str], None]


def report(
    inputs: Sequence[Path],
    output: Path | None,
    *,
    config: CreditConfig,
    tell: Tell,
    file_format: str = "html",
    compare: CreditConfig | None = None,
    options: ReconstructOptions | None = None,
    logs: Sequence[Path] = (),
    title: str | None = None,
    task: str | None = None,
    watch: bool = False,
) -> None:
    """Write what was asked for and tell where it is, a line each.

    One input that is a folder is a training run. ``task`` names the group of a picture.

    Raises:
        ConfigError: an option has no meaning for this input or format.
        MissingDependencyError: the format needs a package that is not installed.
        InputNotFoundError, TraceError, CreditError: the input cannot be used.
    """
    is_run = len(inputs) == 1 and inputs[0].is_dir()
    _check_options(is_run=is_run, file_format=file_format, watch=watch, task=task)
    if is_run:
        _report_run(inputs[0], output, title, tell, watch=watch)
        return
    target = output or Path(f"report.{file_format}")
    if file_format == "html":
        summary = write_report(
            inputs, target, config=config, compare=compare, options=options, logs=logs, title=title
        )
        tell_page(summary, tell)
        return
    require_folder(target)
    facts = batch_facts(read_input(inputs, logs=logs, options=options).trajectories, config, compare)
    written = (
        write_png(facts, target, task=task) if file_format == "png" else EXPORTS[file_format](facts, target)
    )
    tell(f"wrote {', '.join(str(path) for path in written)}")


def tell_page(summary: ReportSummary, tell: Tell) -> None:
    """Where the page is, how large, and what it leaves out."""
    size = f"{summary.bytes / 1e6:.1f} MB, {summary.rollouts_shown} of {summary.rollouts} rollouts"
    tell(f"wrote {summary.path} ({size})")
    for note in summary.notes:
        tell(f"note: {note}")


def _check_options(*, is_run: bool, file_format: str, watch: bool, task: str | None) -> None:
    if file_format not in FORMATS:
        raise ConfigError(f"--format must be one of {', '.join(FORMATS)}, got {file_format!r}")
    if watch and not is_run:
        raise ConfigError("--watch follows a training run: name its folder as the only input")
    if is_run and file_format != "html":
        raise ConfigError(
            f"--format {file_format} needs a batch: name files in the run's folder, such as trajectories/0001.jsonl.gz"
        )
    if task is not None and file_format != "png":
        raise ConfigError(f"--task chooses the group of --format png, got --format {file_format}")


def _report_run(run_dir: Path, output: Path | None, title: str | None, tell: Tell, *, watch: bool) -> None:
    if watch:
        watch_run(run_dir, output, on_write=lambda summary: tell_page(summary, tell))
    else:
        tell_page(write_run_report(run_dir, output, title=title), tell)
