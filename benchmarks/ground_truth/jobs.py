"""The benchmark as independent jobs, each a family and what is done with it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.ground_truth.estimators import Estimator
from benchmarks.ground_truth.families import Problem, logits, number_of, problem
from benchmarks.ground_truth.learning import LearningSettings, learning_curve
from benchmarks.ground_truth.mdps import Floats, MDPs
from benchmarks.ground_truth.measure import (
    Truth,
    exact_advantages,
    milestone_precision,
    rank_correlation,
    sign_agreement,
    trap_precision,
)
from benchmarks.ground_truth.params import EXACT, Params, read_params
from benchmarks.ground_truth.policies import softmax
from benchmarks.ground_truth.sampling import Rollouts, sample


@dataclass(frozen=True, slots=True)
class LearningJob:
    """Learn with one estimator. ``scale_free`` is the unit-RMS step."""

    family: str
    estimator: str
    rate: float
    scale_free: bool


@dataclass(frozen=True, slots=True)
class MeasurementJob:
    """Compare all estimators with the truth on one sample."""

    family: str
    strength: float
    group_size: int


Job = LearningJob | MeasurementJob
Figures = dict[str, dict[str, Floats]]
"""Estimator -> figure -> one value per MDP."""


def all_jobs(params: Params) -> list[Job]:
    """Every job once, families with the largest graphs first."""
    jobs: list[Job] = []
    for family in reversed(params.families):
        rates = [(name, params.learning.learning_rate, True) for name in [*params.estimators, EXACT]]
        rates += [(name, rate, True) for name in params.robustness for rate in params.learning.other_rates]
        rates += [(name, rate, False) for name in params.robustness for rate in params.learning.raw_rates]
        jobs += [LearningJob(family, *setting) for setting in rates]
        jobs += [MeasurementJob(family, *point) for point in params.measurement.points()]
    return jobs


def run_job(job: Job, seeds: int) -> Floats | Figures:
    """A learning curve (iterations + 1, M), or the figures of every estimator."""
    if isinstance(job, LearningJob):
        return run_learning(job, seeds)
    return run_measurement(job, seeds)


def run_learning(job: LearningJob, seeds: int) -> Floats:
    """Success probability after each iteration. Shape (iterations + 1, M)."""
    params, this = read_params(), problem(job.family, seeds)
    settings = LearningSettings(
        iterations=params.learning.iterations,
        groups=params.learning.groups,
        group_size=params.learning.group_size,
        learning_rate=job.rate,
        clip=params.learning.clip,
        scale_free=job.scale_free,
    )
    if job.estimator == EXACT:
        estimate = exact_advantages
    else:
        estimate = partial(_estimate, Estimator.of(params.estimators[job.estimator]))
    return learning_curve(this.mdps, this.start_logit_MSA, estimate, settings, number_of(job.family))


def _estimate(estimator: Estimator, rollouts: Rollouts, mdps: MDPs, policy_MSA: Floats) -> Floats:
    del policy_MSA
    return estimator.advantages(rollouts, mdps)


def run_measurement(job: MeasurementJob, seeds: int) -> Figures:
    """Figures on the same rollouts of policies of one strength; of every estimator at the main point."""
    params, this = read_params(), problem(job.family, seeds)
    main = (params.measurement.strength, params.measurement.group_size)
    names = params.estimators if (job.strength, job.group_size) == main else params.compared()
    policy = softmax(this.mdps, logits(job.family, seeds, job.strength))
    rng = np.random.default_rng(number_of(job))
    rollouts = sample(this.mdps, policy, params.measurement.groups, job.group_size, rng)
    truth = Truth(rollouts, exact_advantages(rollouts, this.mdps, policy), len(this.mdps))
    return {name: _figures(Estimator.of(params.estimators[name]), this, truth) for name in names}


def _figures(estimator: Estimator, this: Problem, truth: Truth) -> dict[str, Floats]:
    credit = estimator.credit(truth.rollouts, this.mdps)
    estimate_X = estimator.adjusted(credit)
    figures = {
        "sign agreement": sign_agreement(truth, estimate_X),
        "rank correlation": rank_correlation(truth, estimate_X),
        "correlation": _correlation(truth, estimate_X),
    }
    if estimator.config.estimator == "milegpo" and estimator.config.stage != "graph":
        figures |= milestone_precision(this, truth.rollouts, credit)
        figures |= trap_precision(this, truth.rollouts, credit)
    return figures


def _correlation(truth: Truth, estimate_X: Floats) -> Floats:
    """Pearson's correlation with the true advantage over the steps of each MDP. Shape (M,)."""
    values = []
    for mdp in range(truth.count):
        here = truth.rollouts.mdp_X == mdp
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            values.append(np.corrcoef(truth.advantage_X[here], estimate_X[here])[0, 1])
    return np.array(values)
