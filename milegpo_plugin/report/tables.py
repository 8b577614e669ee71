"""Compact terminal tables of rebuilt trajectories, credit and training runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from milegpo_plugin.credit.diagnostics import Diagnostics
from milegpo_plugin.credit.measures import Share
from milegpo_plugin.flags import FLAGS
from milegpo_plugin.report.progress import decimal, percent
from milegpo_plugin.report.text import one_line
from milegpo_plugin.types import Skipped, Trajectory

STRONGEST = 10
TEXT_WIDTH = 60


def trajectory_table(trajectories: Sequence[Trajectory]) -> Table:
    """One row a task: rollouts, steps, tool calls, rewards, token ids."""
    table = _table("task", "rollouts", "steps", "tool calls", "with reward", "with token ids", "agents")
    groups: dict[str, list[Trajectory]] = {}
    for trajectory in trajectories:
        groups.setdefault(trajectory.task_id, []).append(trajectory)
    for task_id, group in sorted(groups.items()):
        steps = [step for trajectory in group for step in trajectory.steps]
        agents = sorted({step.agent for step in steps if step.agent})
        table.add_row(
            _text(task_id),
            str(len(group)),
            str(len(steps)),
            str(sum(len(step.action.tool_calls) for step in steps)),
            str(sum(t.reward is not None for t in group)),
            str(sum(step.response_token_ids is not None for step in steps)),
            _text(", ".join(agents) or "–"),
        )
    return table


def counts_line(counts: Mapping[str, int]) -> str:
    """What was read, as ``25 spans, 6 model calls``; zeros are left out, except of spans."""
    named = [(name.replace("_", " "), count) for name, count in sorted(counts.items()) if name != "spans"]
    return ", ".join(f"{count} {name}" for name, count in [("spans", counts["spans"]), *named] if count)


def count_flags(trajectories: Iterable[Trajectory]) -> Counter[str]:
    """How many rollouts and steps have each flag."""
    counts: Counter[str] = Counter()
    for trajectory in trajectories:
        counts.update(trajectory.flags)
        counts.update(flag for step in trajectory.steps for flag in step.flags)
    return counts


def flag_table(trajectories: Iterable[Trajectory]) -> Table | None:
    """Every flag with its count, meaning and cure; None when there is none."""
    return flag_count_table(count_flags(trajectories))


def flag_count_table(counts: Mapping[str, int]) -> Table | None:
    """The same from counts."""
    if not counts:
        return None
    table = _table("flag", "count", "meaning", "cure", left=(2, 3))
    for flag, count in sorted(counts.items()):
        known = FLAGS.get(flag)
        table.add_row(_text(flag), str(count), known.meaning if known else "–", (known and known.cure) or "–")
    return table


def skip_table(skipped: Iterable[Skipped]) -> Table | None:
    """Reasons for which something was left out, with a first example; None when there is none."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for item in skipped:
        reasons.setdefault((item.kind, item.reason), []).append(item.id)
    if not reasons:
        return None
    table = _table("left out", "count", "reason", "first", left=(2, 3))
    for (kind, reason), ids in sorted(reasons.items()):
        table.add_row(_text(kind), str(len(ids)), _text(reason, 200), _text(ids[0], 400))
    return table


def metric_table(metrics: Mapping[str, float]) -> Table:
    """Name and value of every metric."""
    table = _table("metric", "value")
    for name, value in metrics.items():
        table.add_row(name.replace("_", " "), f"{value:.4g}")
    return table


def diagnostics_table(figures: Diagnostics) -> Table:
    """The figures of method.md §8 with their counts; times in milliseconds."""
    table = _table("diagnostic", "value", "counts")
    for name in ("rollouts", "groups", "groups_without_signal", "states"):
        table.add_row(name.replace("_", " "), str(getattr(figures, name)), "")
    table.add_row("coverage: steps from a state that two rollouts share", percent(figures.coverage), "")
    table.add_row("ambiguity: branches that tie under goal distance", *_share(figures.ambiguity))
    for stage, share in figures.tie_correction.items():
        table.add_row(f"tied pairs that {stage} ranks as their outcomes", *_share(share))
    for name, count in {**asdict(figures.support), **asdict(figures.evidence)}.items():
        table.add_row(f"milestone candidates: {name.replace('_', ' ')}", str(count), "")
    for name, seconds in figures.seconds.items():
        table.add_row(f"time: {name}", f"{1000 * seconds:.1f} ms", "")
    return table


def _share(share: Share) -> tuple[str, str]:
    return percent(share.value), f"{share.part} of {share.whole}"


def node_table(nodes: Iterable[Mapping[str, Any]], kind: str) -> Table | None:
    """The strongest milestones or traps of a batch with text, counts and success interval; None without any."""
    key = "calibrated_score" if kind == "milestone" else "trap_score"
    found = [node for node in nodes if node["kind"] == kind and node[key]]
    if not found:
        return None
    table = _table(kind, "score", "visits", "successes", "interval", "task", left=(0,))
    for node in sorted(found, key=lambda node: (-node[key], node["state"]))[:STRONGEST]:
        table.add_row(
            _text(node["state"]),
            decimal(node[key]),
            str(node["visits"]),
            str(node["successes"]),
            f"{percent(node['success_low'])}–{percent(node['success_high'])}",
            _text(node["task_id"], 20),
        )
    return table


def run_table(metrics: Sequence[Mapping[str, Any]]) -> Table:
    """Validation at the first, the best and the last iteration of a run."""
    scored = [record for record in metrics if record.get("validation/success") is not None]
    table = _table("", "iteration", "validation success", "mean return", "steps per rollout")
    if not scored:
        return table
    best = max(scored, key=lambda record: (record["validation/success"], record["iteration"]))
    for name, record in (("first", scored[0]), ("best", best), ("last", scored[-1])):
        table.add_row(
            name,
            str(record["iteration"]),
            percent(record["validation/success"]),
            decimal(record["validation/return"]),
            decimal(record["validation/steps"], 1),
        )
    return table


def _table(*columns: str, left: Sequence[int] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for position, name in enumerate(columns):
        first = position == 0
        table.add_column(name, justify="left" if first or position in left else "right", overflow="fold")
    return table


def _text(value: str, width: int = TEXT_WIDTH) -> Text:
    """Trace text is data: one line, no markup."""
    return Text(one_line(value, width))
