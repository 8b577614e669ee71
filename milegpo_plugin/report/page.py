"""The report page of a batch and of a training run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit
from milegpo_plugin.files import Input, read_input
from milegpo_plugin.report.advice import credit_advice
from milegpo_plugin.report.compare import estimator_name
from milegpo_plugin.report.document import Content, ReportSummary, write_page
from milegpo_plugin.report.facts import Facts, collect_facts
from milegpo_plugin.report.run_figures import run_figures
from milegpo_plugin.report.run_files import REPORT_FILE, Run, read_run
from milegpo_plugin.report.run_summary import run_cards, run_skips
from milegpo_plugin.report.summary import batch_cards, flag_reasons, skip_reasons
from milegpo_plugin.report.text import clean
from milegpo_plugin.trajectories import ReconstructOptions
from milegpo_plugin.types import Trajectory

__all__ = ["ReportSummary", "batch_facts", "write_report", "write_run_report"]


def write_report(
    inputs: Sequence[Path],
    output: Path,
    *,
    config: CreditConfig,
    compare: CreditConfig | None = None,
    options: ReconstructOptions | None = None,
    logs: Sequence[Path] = (),
    title: str | None = None,
) -> ReportSummary:
    """Write the page of one batch: traces or ``trajectories.jsonl`` files.

    ``compare`` adds a second estimator on the same rollouts.

    Raises:
        InputNotFoundError: a path, or the folder of ``output``, does not exist.
        TraceError: nothing usable is in the inputs.
        CreditError: credit cannot be computed from them.
    """
    found = read_input(inputs, logs=logs, options=options)
    facts = batch_facts(found.trajectories, config, compare)
    name = inputs[0].name if len(inputs) == 1 else f"{len(inputs)} files"
    return write_page(_batch_content(facts, found, title or f"Step credit of {name}"), output)


def batch_facts(
    trajectories: Sequence[Trajectory],
    config: CreditConfig,
    compare: CreditConfig | None = None,
    *,
    label: str = "",
) -> Facts:
    """Assign credit, with a second estimator when one is given, and collect what can be shown."""
    other = None if compare is None else assign_credit(trajectories, compare)
    return collect_facts(trajectories, assign_credit(trajectories, config), other=other, label=label)


def _batch_content(facts: Facts, found: Input, title: str) -> Content:
    """The page of one batch."""
    config, skipped = facts.credit.config, [*found.skipped, *facts.credit.skipped]
    return Content(
        title=clean(title, 200),
        subtitle=f"{estimator_name(config)} · success is a reward above {config.success_threshold:g}",
        cards=batch_cards(facts, len(found.skipped)),
        batches=[facts],
        config=config,
        skipped=skip_reasons(skipped),
        flags=flag_reasons(facts),
        notes=[clean(note, 400) for note in [*found.notes, *credit_advice(facts.credit.metrics())]],
    )


def write_run_report(
    run_dir: Path, output: Path | None = None, *, refresh: int | None = None, title: str | None = None
) -> ReportSummary:
    """Write the page of a training run, by default ``report.html`` in its folder.

    It shows the learning curve, credit figures over iterations, the time split, and the groups of
    the first, a middle and the last iteration. ``refresh`` makes the page load itself again after so
    many seconds, for a run that goes on.

    Raises:
        InputNotFoundError: ``run_dir`` is no run, or the folder of ``output`` does not exist.
        TraceError: a file of the run cannot be read.
        ConfigError: the run's settings are not understood.
    """
    run = read_run(run_dir)
    return write_page(_run_content(run, title, refresh), output or run_dir / REPORT_FILE)


def _run_content(run: Run, title: str | None, refresh: int | None) -> Content:
    batches = [
        batch_facts(run.read_trajectories(iteration), run.credit, label=f"iteration {iteration}")
        for iteration in run.chosen_iterations()
    ]
    notes = ["The run goes on: this page loads itself again."] if refresh else []
    return Content(
        title=clean(title or f"Training run {run.path.resolve().name}", 200),
        subtitle=f"{estimator_name(run.credit)} · success is a reward above {run.credit.success_threshold:g}",
        cards=run_cards(run.metrics),
        batches=batches,
        config=run.credit,
        skipped=run_skips(run.metrics),
        figures=run_figures(run.metrics),
        notes=notes,
        refresh=refresh,
    )
