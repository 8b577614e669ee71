"""What the jobs found: the figures of the tables and the plots, and the rows of the CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from benchmarks.ground_truth.jobs import Figures, Job, LearningJob, MeasurementJob
from benchmarks.ground_truth.mdps import Floats
from benchmarks.ground_truth.params import EXACT, Params
from benchmarks.ground_truth.statistics import Interval, area, interval


@dataclass(frozen=True, slots=True)
class Results:
    """Results of all jobs under their parameters."""

    params: Params
    found: Mapping[Job, Floats | Figures]

    def curve(self, family: str, estimator: str) -> Floats:
        """The main learning curve. Shape (iterations + 1, M)."""
        job = LearningJob(family, estimator, self.params.learning.learning_rate, True)
        return cast(Floats, self.found[job])

    def area(self, family: str, estimator: str, rate: float | None = None, scale_free: bool = True) -> Floats:
        """Area under the learning curve. Shape (M,)."""
        rate = self.params.learning.learning_rate if rate is None else rate
        return area(cast(Floats, self.found[LearningJob(family, estimator, rate, scale_free)]))

    def difference(
        self, family: str, estimator: str, reference: str, rate: float | None = None, scale_free: bool = True
    ) -> Interval:
        """Paired difference of the areas."""
        ours = self.area(family, estimator, rate, scale_free)
        found = interval(ours - self.area(family, reference, rate, scale_free))
        assert found is not None
        return found

    def worse_than_start(self, family: str, estimator: str, rate: float) -> int:
        """Runs that end with a lower success probability than they began with."""
        curve = cast(Floats, self.found[LearningJob(family, estimator, rate, True)])
        return int((curve[-1] < curve[0]).sum())

    def figure(
        self, name: str, family: str, estimator: str, strength: float | None = None, size: int | None = None
    ) -> Interval | None:
        """A measured figure; None where the estimator does not define it."""
        main = self.params.measurement
        job = MeasurementJob(family, strength or main.strength, size or main.group_size)
        values = cast(Figures, self.found[job])[estimator].get(name)
        return None if values is None else interval(values)

    def better_everywhere(
        self, reference: str, estimators: list[str], rate: float | None = None
    ) -> list[str]:
        """Estimators whose area is significantly above the reference's on every family."""
        return [
            name
            for name in estimators
            if all(self.difference(family, name, reference, rate).low > 0 for family in self.params.families)
        ]

    def learning_rows(self) -> Iterator[dict[str, Any]]:
        """The area under every learning curve."""
        for job, found in self.found.items():
            if isinstance(job, LearningJob):
                yield _fields(job) | _rounded(interval(area(cast(Floats, found))))

    def measured_rows(self) -> Iterator[dict[str, Any]]:
        """Every figure of closeness to the truth; those that no MDP defines are left out."""
        for job, found in self.found.items():
            if isinstance(job, MeasurementJob):
                for estimator, figures in cast(Figures, found).items():
                    for name, values in figures.items():
                        known = interval(values)
                        if known is not None:
                            yield {**_fields(job), "estimator": estimator, "figure": name, **_rounded(known)}

    def curve_rows(self) -> Iterator[dict[str, Any]]:
        """Mean success probability before the first update and after each, at the main learning rate."""
        for family in self.params.families:
            for name in [*self.params.estimators, EXACT]:
                curve = self.curve(family, name).mean(axis=1)
                values = {f"after {number}": f"{value:.4f}" for number, value in enumerate(curve)}
                yield {"family": family, "estimator": name, **values}


def _rounded(found: Interval | None) -> dict[str, str]:
    return {} if found is None else {name: f"{value:.4f}" for name, value in found._asdict().items()}


def _fields(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in job.__slots__}
