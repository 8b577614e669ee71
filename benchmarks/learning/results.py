"""Finished runs as lines of a CSV file, and what they say: tables with intervals, and curves."""

from __future__ import annotations

import csv
import hashlib
import os
import platform
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.ground_truth.mdps import Floats
from benchmarks.ground_truth.statistics import Interval, interval
from benchmarks.learning.params import Params
from benchmarks.learning.runs import Job, Metrics
from benchmarks.learning.speed import speed_table

FIELDS: Final = {
    "success": "success",
    "held_out": "validation/success",
    "steps": "steps",
    "step_credit": "credit/step_credit",
    "tokens": "learner/tokens",
    "seconds_collect": "seconds/collect",
    "seconds_credit": "seconds/credit",
    "seconds_update": "seconds/update",
}
HEAD: Final = ("settings", "game", "estimator", "seed", "iteration", *FIELDS)
REFERENCES: Final = ("grpo", "gigpo", "graphgpo")
Line = dict[str, str]


@dataclass(slots=True)
class Results:
    """All finished runs that the settings made."""

    params: Params
    file: Path
    lines: list[Line]

    @classmethod
    def read(cls, file: Path, params: Params) -> Results:
        """The runs in the file; lines of other settings are left out."""
        lines: list[Line] = []
        if file.exists():
            with file.open(encoding="utf-8", newline="") as stream:
                lines = [line for line in csv.DictReader(stream) if line["settings"] == digest(params)]
        return cls(params, file, lines)

    @property
    def jobs(self) -> set[Job]:
        """Runs that are complete."""
        return {Job(line["game"], line["estimator"], int(line["seed"])) for line in self.lines}

    def add(self, job: Job, metrics: Sequence[Metrics]) -> None:
        """Keep a finished run, in the file too."""
        for record in metrics:
            values = [record.get(name) for name in FIELDS.values()]
            cells = [digest(self.params), job.game, job.estimator, job.seed, record["iteration"]]
            cells += ["" if value is None else f"{value:.6g}" for value in values]
            self.lines.append(dict(zip(HEAD, map(str, cells), strict=True)))
        self.lines.sort(
            key=lambda line: (line["game"], line["estimator"], int(line["seed"]), int(line["iteration"]))
        )
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, HEAD, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.lines)

    def curves(self, game: str, estimator: str, field: str) -> dict[int, Floats]:
        """The known values of a field over the iterations of each run, by seed."""
        found: defaultdict[int, list[float]] = defaultdict(list)
        for line in self.lines:
            if (line["game"], line["estimator"]) == (game, estimator) and line[field]:
                found[int(line["seed"])].append(float(line[field]))
        return {seed: np.array(values) for seed, values in sorted(found.items())}

    def write_report(self, folder: Path, command: str) -> None:
        """``learning.md`` and ``learning.svg``."""
        from benchmarks.learning.plots import draw

        if not self.lines:
            return
        (folder / "learning.md").write_text("\n".join(self._report(command)) + "\n", encoding="utf-8")
        draw(self, folder / "learning.svg")

    def _report(self, command: str) -> Iterable[str]:
        budget = self.params.train["train"]
        yield "# Learning with the embedded backend"
        yield ""
        yield (
            f"`{command}` on {os.cpu_count()} {platform.machine()} cores. Each run: {budget['iterations']} iterations of "
            f"{budget['tasks_per_iteration']} instances × {budget['rollouts_per_task']} rollouts, sampled at temperature "
            "1; every estimator starts from the same weights of a seed. Area: mean training success over the "
            "iterations. Brackets: 95% bootstrap intervals over seeds. Held-out instances are never trained on."
        )
        for game in self.params.games:
            if any(line["game"] == game for line in self.lines):
                yield from ["", f"## {game}", "", *self._table(game)]
        yield from ["", "![Training success over iterations](learning.svg)", "", "## Speed", ""]
        yield (
            "Over the iterations of all runs: median [10%, 90%]. Rollouts of a whole iteration; tokens of the policy while "
            "it plays, and again while it is updated. Several runs went on at once, so a rate is that of one of them."
        )
        yield ""
        rollouts = budget["tasks_per_iteration"] * budget["rollouts_per_task"]
        yield from speed_table(self.params.games, self.lines, rollouts)

    def _table(self, game: str) -> Iterable[str]:
        names = [
            "seeds",
            "area",
            "last 5 iterations",
            "held out, last",
            "step credit",
            "minutes",
            "credit, share",
        ]
        names += [f"area against {name}" for name in REFERENCES]
        yield f"| estimator | {' | '.join(names)} |"
        yield "|---|" + "---:|" * len(names)
        for estimator in self.params.estimators:
            if self.curves(game, estimator, "success"):
                yield f"| {estimator} | {' | '.join(self._cells(game, estimator))} |"

    def _cells(self, game: str, estimator: str) -> Iterable[str]:
        success = self.curves(game, estimator, "success")
        yield str(len(success))
        yield show(interval([curve.mean() for curve in success.values()]))
        yield show(interval([curve[-5:].mean() for curve in success.values()]))
        yield show(interval([curve[-1] for curve in self.curves(game, estimator, "held_out").values()]))
        credited = self.curves(game, estimator, "step_credit").values()
        yield f"{np.mean([curve.mean() for curve in credited]):.0%}"
        parts = {
            part: float(
                np.mean([curve.sum() for curve in self.curves(game, estimator, f"seconds_{part}").values()])
            )
            for part in ("collect", "credit", "update")
        }
        yield f"{sum(parts.values()) / 60:.1f}"
        yield f"{parts['credit'] / sum(parts.values()):.2%}"
        for reference in REFERENCES:
            yield self._difference(game, estimator, reference)

    def _difference(self, game: str, estimator: str, reference: str) -> str:
        """Of the areas of runs with the same seed."""
        mine, theirs = (self.curves(game, name, "success") for name in (estimator, reference))
        shared = sorted(mine.keys() & theirs.keys())
        if estimator == reference or not shared:
            return "–"
        found = interval([mine[seed].mean() - theirs[seed].mean() for seed in shared])
        return show(found, sign="+") + (" *" if found is not None and found.excludes_zero() else "")


def show(found: Interval | None, sign: str = "") -> str:
    """Mean and ends of the interval."""
    if found is None:
        return "–"
    return f"{found.mean:{sign}.3f} [{found.low:{sign}.3f}, {found.high:{sign}.3f}]"


def digest(params: Params) -> str:
    """Of everything that decides a run, except how many runs there are."""
    fixed = params.model_copy(update={"seeds": 1, "estimators": {}, "games": {}})
    return hashlib.sha256(fixed.model_dump_json().encode()).hexdigest()[:8]
