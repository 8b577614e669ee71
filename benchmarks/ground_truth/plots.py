"""The results as pictures: learning curves, differences, and closeness to the truth against group size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from benchmarks.ground_truth.params import EXACT
from benchmarks.ground_truth.results import Results
from benchmarks.ground_truth.statistics import interval

COLORS = {
    "grpo": "#8c8c8c",
    "gigpo": "#c77c2e",
    "graphgpo": "#4c78a8",
    "milegpo": "#3a7d44",
    "plangpo": "#b5179e",
    EXACT: "#000000",
}


def draw(results: Results, folder: Path) -> None:
    """Write the three pictures as SVG files that are the same at every run."""
    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "ground truth", "font.size": 8, "axes.spines.top": False})
    mpl.rcParams["axes.spines.right"] = False
    for name, picture in (
        ("learning_curves", _curves(results)),
        ("differences", _differences(results)),
        ("rank_correlation", _rank_correlation(results)),
    ):
        picture.savefig(folder / f"ground_truth_{name}.svg", metadata={"Date": None}, bbox_inches="tight")
        plt.close(picture)


def _panels(results: Results, columns: int) -> tuple[Any, list[Any]]:
    families = list(results.params.families)
    rows = -(-len(families) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(2.6 * columns, 2.2 * rows), layout="constrained")
    panels = list(np.ravel(axes))
    for panel in panels[len(families) :]:
        panel.set_axis_off()
    for panel, family in zip(panels, families, strict=False):
        panel.set_title(family, fontsize=9)
    return figure, panels


def _curves(results: Results) -> Any:
    figure, panels = _panels(results, 4)
    for panel, family in zip(panels, results.params.families, strict=False):
        for name, color in COLORS.items():
            curve = results.curve(family, name)
            found = [known for row in curve if (known := interval(row)) is not None]
            low, middle, high = ([getattr(item, end) for item in found] for end in ("low", "mean", "high"))
            style = ":" if name == EXACT else "-"
            panel.plot(middle, color=color, label=name, linestyle=style, linewidth=1.2)
            panel.fill_between(range(len(found)), low, high, color=color, alpha=0.12)
        panel.set_xlabel("iteration")
    panels[0].set_ylabel("success probability")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(COLORS))
    return figure


def _differences(results: Results) -> Any:
    reference = results.params.reference
    names = [name for name in results.params.estimators if name != reference]
    families = list(results.params.families)
    figure, axes = plt.subplots(
        1,
        len(families),
        figsize=(1.9 * len(families), 0.2 * len(names) + 1),
        sharey=True,
        layout="constrained",
    )
    for panel, family in zip(axes, families, strict=True):
        panel.axvline(0, color="#bbbbbb", linewidth=0.8)
        for row, name in enumerate(names):
            found = results.difference(family, name, reference)
            color = "#3a7d44" if found.low > 0 else "#c0392b" if found.high < 0 else "#888888"
            panel.plot([found.low, found.high], [row, row], color=color, linewidth=1.2)
            panel.plot(found.mean, row, "o", color=color, markersize=2.5)
        panel.set_title(family, fontsize=8)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    figure.supxlabel(f"area under the success curve, difference to {reference}", fontsize=8)
    return figure


def _rank_correlation(results: Results) -> Any:
    figure, panels = _panels(results, 4)
    sizes = results.params.measurement.group_sizes
    for panel, family in zip(panels, results.params.families, strict=False):
        for name, color in COLORS.items():
            if name == EXACT:
                continue
            found = [results.figure("rank correlation", family, name, size=size) for size in sizes]
            known = [item for item in found if item is not None]
            panel.plot(
                sizes[: len(known)],
                [item.mean for item in known],
                "o-",
                color=color,
                label=name,
                markersize=3,
            )
        panel.set_xticks(sizes)
        panel.set_xlabel("rollouts a group")
    panels[0].set_ylabel("rank correlation within a state")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(COLORS) - 1)
    return figure
