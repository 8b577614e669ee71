"""The results as markdown tables."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.ground_truth.params import EXACT
from benchmarks.ground_truth.results import Results
from benchmarks.ground_truth.statistics import Interval

PAPER_ESTIMATORS = (
    "grpo",
    "gigpo",
    "hgpo",
    "md",
    "rcs",
    "milegpo webshop",
    "milegpo webshop, mean_std",
    "milegpo",
)
PRECISION_ESTIMATORS = ("md", "rcs", "milegpo webshop", "milegpo", "milegpo, lower bound")


def tables(results: Results, command: str, cost: str) -> str:
    """The whole page."""
    params = results.params
    families = list(params.families)
    head = (
        "# Credit against ground truth: tables\n\n"
        f"Made by `{command}`: {cost}. {params.seeds} MDPs a family, means "
        "with 95% percentile bootstrap intervals over MDPs; `*` marks a difference whose interval excludes 0. "
        "`params.yaml` beside the code holds every setting. What the figures teach is in "
        "[README.md](README.md).\n"
    )
    parts = [
        head,
        _section("Learning: area under the success curve", _area_note(results), _areas(results, families)),
        _section("Difference to strict MileGPO", _better_note(results), _differences(results, families)),
        _section("The paper's estimators: difference to GraphGPO", _PAPER_NOTE, _paper(results, families)),
        _section("Learning rate", _RATE_NOTE, _rates(results, families)),
        _section("Runs that end worse than they began", _WORSE_NOTE, _worse(results, families)),
        _section("Without the scale-free update", _RAW_NOTE, _raw(results, families)),
        *(_section(title, note, _measured(results, figure, families)) for title, figure, note in _MEASURED),
        *(
            _section(f"{title} against group size and policy strength", _AGAINST_NOTE, against)
            for title, against in (
                (title, _against(results, figure, families)) for title, figure in _AGAINST.items()
            )
        ),
        _section("Milestones and traps", _PRECISION_NOTE, _precision(results, families)),
    ]
    return "\n".join(parts)


_PAPER_NOTE = "The same areas, paired by MDP; eta is 1 for md and rcs."
_RATE_NOTE = "Area at each learning rate; the best rate of an estimator is bold."
_WORSE_NOTE = "How many runs end below the success probability they started from, at each learning rate."
_RAW_NOTE = (
    "The same learning with advantages as the estimators give them, at three learning rates: their sizes differ, "
    "so the order depends on the rate, and at a fixed rate it says more about size than about credit."
)
_MEASURED = (
    (
        "Sign agreement with the true advantage",
        "sign agreement",
        "Share of steps with the right sign, of those with |A| > 0.001; 0 counts half. "
        "Policies that succeed 30% of the time, groups of 8.",
    ),
    (
        "Rank correlation within a state",
        "rank correlation",
        "Spearman's correlation with the true advantage among the steps of a group that leave one state.",
    ),
    ("Correlation over all steps", "correlation", "Pearson's correlation with the true advantage."),
)
_AGAINST = {
    "Sign agreement": "sign agreement",
    "Rank correlation": "rank correlation",
    "Milestone precision": "milestone precision",
    "Trap precision": "trap precision",
}
_AGAINST_NOTE = "For K = 4, 8, 16 (policies at 30%) / for policies at 10, 30, 60, 85% (K = 8)."
_PRECISION_NOTE = (
    "True milestones lie on at least half of the optimal rollouts; true traps are states without any way to the "
    "goal. Precision is the share of the estimator's weight on true ones; the base rate is their share among "
    "candidates, or among all visited states for traps. Policies at 30%, K = 8."
)


def _area_note(results: Results) -> str:
    learning = results.params.learning
    return (
        f"Tabular policy gradient, {learning.iterations} iterations of {learning.groups} groups of "
        f"{learning.group_size} rollouts; advantages of an iteration at unit RMS, clipped at {learning.clip:g}; "
        f"learning rate {learning.learning_rate:g}. The area is the mean exact success probability after the "
        f"updates. `{EXACT}` learns from the truth."
    )


def _better_note(results: Results) -> str:
    params = results.params
    better = results.better_everywhere(params.reference, list(params.estimators))
    lines = [
        f"Paired by MDP. Significantly better than `{params.reference}` on every family: {_names(better)}."
    ]
    for rate in params.learning.other_rates:
        better = results.better_everywhere(params.reference, list(params.robustness), rate)
        lines.append(f"At learning rate {rate:g}, of those measured there: {_names(better)}.")
    return " ".join(lines)


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _section(title: str, note: str, table: str) -> str:
    return f"## {title}\n\n{note}\n\n{table}\n"


def _table(columns: Iterable[str], rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    names = list(columns)
    lines = ["| estimator | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    lines += [f"| {label} | " + " | ".join(cells) + " |" for label, cells in rows]
    return "\n".join(lines)


def _areas(results: Results, families: list[str]) -> str:
    names = [*results.params.estimators, EXACT]
    return _table(
        families,
        ((name, (f"{results.area(family, name).mean():.3f}" for family in families)) for name in names),
    )


def _differences(results: Results, families: list[str]) -> str:
    names = [*results.params.estimators, EXACT]
    return _differences_to(results.params.reference, names, results, families)


def _paper(results: Results, families: list[str]) -> str:
    names = [name for name in PAPER_ESTIMATORS if name in results.params.estimators]
    return _differences_to(results.params.baseline, names, results, families)


def _differences_to(reference: str, names: list[str], results: Results, families: list[str]) -> str:
    names = [name for name in names if name != reference]
    return _table(
        families,
        (
            (name, (_signed(results.difference(family, name, reference)) for family in families))
            for name in names
        ),
    )


def _signed(found: Interval) -> str:
    mark = "*" if found.excludes_zero() else ""
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]{mark}"


def _rates(results: Results, families: list[str]) -> str:
    learning = results.params.learning
    rates = sorted([learning.learning_rate, *learning.other_rates])
    return _by_rate(results, families, rates, scale_free=True)


def _worse(results: Results, families: list[str]) -> str:
    rates = sorted([results.params.learning.learning_rate, *results.params.learning.other_rates])

    def cells(name: str) -> Iterable[str]:
        for family in families:
            yield " / ".join(str(results.worse_than_start(family, name, rate)) for rate in rates)

    return _table(_with_rates(families, rates), ((name, cells(name)) for name in results.params.robustness))


def _with_rates(families: list[str], rates: list[float]) -> list[str]:
    return [f"{family} ({' / '.join(f'{rate:g}' for rate in rates)})" for family in families]


def _raw(results: Results, families: list[str]) -> str:
    return _by_rate(results, families, sorted(results.params.learning.raw_rates), scale_free=False)


def _by_rate(results: Results, families: list[str], rates: list[float], scale_free: bool) -> str:
    def cells(name: str) -> Iterable[str]:
        for family in families:
            areas = [float(results.area(family, name, rate, scale_free).mean()) for rate in rates]
            best = max(areas)
            yield " / ".join(f"**{value:.3f}**" if value == best else f"{value:.3f}" for value in areas)

    return _table(_with_rates(families, rates), ((name, cells(name)) for name in results.params.robustness))


def _measured(results: Results, figure: str, families: list[str]) -> str:
    return _table(
        families,
        (
            (name, (_plain(results.figure(figure, family, name)) for family in families))
            for name in results.params.estimators
        ),
    )


def _plain(found: Interval | None) -> str:
    return "–" if found is None else f"{found.mean:.2f} ± {(found.high - found.low) / 2:.2f}"


def _against(results: Results, figure: str, families: list[str]) -> str:
    main = results.params.measurement

    def cells(name: str) -> Iterable[str]:
        for family in families:
            sizes = [results.figure(figure, family, name, size=size) for size in main.group_sizes]
            strengths = [results.figure(figure, family, name, strength) for strength in main.strengths]
            yield " ".join(map(_bare, sizes)) + " / " + " ".join(map(_bare, strengths))

    rows = ((name, list(cells(name))) for name in results.params.compared())
    return _table(
        families, ((name, row) for name, row in rows if any(set(cell) - set("– /") for cell in row))
    )


def _bare(found: Interval | None) -> str:
    return "–" if found is None else f"{found.mean:.2f}"


def _precision(results: Results, families: list[str]) -> str:
    def rows() -> Iterable[tuple[str, Iterable[str]]]:
        for name in PRECISION_ESTIMATORS:
            for figure in ("milestone precision", "trap precision", "trap recall"):
                yield (
                    f"{name}: {figure}",
                    (_plain(results.figure(figure, family, name)) for family in families),
                )
        for figure in ("milestone base rate", "dead end rate"):
            yield (
                figure,
                (_plain(results.figure(figure, family, results.params.reference)) for family in families),
            )

    return _table(families, rows())
