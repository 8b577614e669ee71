"""The MDPs of a family and the policies that learning starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import numpy as np

from benchmarks.ground_truth import textworld
from benchmarks.ground_truth.exact import dead_ends, optimal_action_values, optimal_visits, success_rate
from benchmarks.ground_truth.mdps import MDP, Bools, Floats, MDPs, random_mdp, stack
from benchmarks.ground_truth.params import Family, read_params
from benchmarks.ground_truth.policies import logits_of_strength, softmax


@dataclass(frozen=True, slots=True)
class Problem:
    """M MDPs with what is true about them."""

    mdps: MDPs
    start_logit_MSA: Floats
    optimal_MSA: Floats
    optimal_visit_MS: Floats  # probability that an optimal rollout passes the state
    dead_end_MS: Bools


@lru_cache(maxsize=2)
def problem(name: str, seeds: int) -> Problem:
    """The first ``seeds`` MDPs of a family."""
    family = read_params().families[name]
    mdps = stack(_draw(name, family, seeds), family.horizon)
    optimal = optimal_action_values(mdps)
    return Problem(
        mdps=mdps,
        start_logit_MSA=_start(name, family, mdps, optimal),
        optimal_MSA=optimal,
        optimal_visit_MS=optimal_visits(mdps, optimal),
        dead_end_MS=dead_ends(mdps, optimal),
    )


def logits(name: str, seeds: int, success: float) -> Floats:
    """Policies of a wanted strength, the same at every call. Shape (M, S, A)."""
    this = problem(name, seeds)
    return logits_of_strength(this.mdps, this.optimal_MSA, success, np.random.default_rng(number_of(name)))


def number_of(*names: object) -> int:
    """A seed from names, the same in every process."""
    return crc32(repr(names).encode())


def _draw(name: str, family: Family, seeds: int) -> list[MDP]:
    if family.kind == "textworld":
        return textworld.load(name)[:seeds]
    kept: list[MDP] = []
    seed = 0
    while len(kept) < seeds:
        drawn = [
            random_mdp(
                family.kind, np.random.default_rng([number_of(name), seed + step]), **family.parameters
            )
            for step in range(seeds)
        ]
        kept += [mdp for mdp, fits in zip(drawn, _fits(drawn, family), strict=True) if fits]
        seed += seeds
    return kept[:seeds]


def _fits(drawn: list[MDP], family: Family) -> list[bool]:
    """Whether a uniform policy succeeds often enough to learn at all, and not too often."""
    if family.start_success is None:
        return [True] * len(drawn)
    mdps = stack(drawn, family.horizon)
    rate = success_rate(mdps, softmax(mdps, np.zeros(mdps.legal_MSA.shape)))
    low, high = family.start_success
    return [bool(low <= value <= high) for value in rate]


def _start(name: str, family: Family, mdps: MDPs, optimal_MSA: Floats) -> Floats:
    if family.start == "uniform":
        return np.zeros(mdps.legal_MSA.shape)
    return logits_of_strength(mdps, optimal_MSA, family.start, np.random.default_rng(number_of(name)))
