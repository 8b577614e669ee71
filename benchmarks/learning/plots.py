"""Learning curves: mean over seeds with bootstrap bands, one panel a game."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from benchmarks.ground_truth.statistics import interval

if TYPE_CHECKING:
    from benchmarks.learning.results import Results


def draw(results: Results, file: Path) -> None:
    """Write the curves as an SVG file that is the same at every run."""
    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "learning", "font.size": 8})
    games = [game for game in results.params.games if any(line["game"] == game for line in results.lines)]
    figure, axes = plt.subplots(
        1, len(games), figsize=(3.4 * len(games), 3), sharey=True, layout="constrained"
    )
    for panel, game in zip(np.atleast_1d(axes), games, strict=True):
        for number, estimator in enumerate(results.params.estimators):
            curves = list(results.curves(game, estimator, "success").values())
            if curves:
                bands = [interval(values) for values in np.stack(curves).T]
                known = [band for band in bands if band is not None]
                iterations = np.arange(1, len(known) + 1)
                panel.plot(
                    iterations, [band.mean for band in known], color=f"C{number}", label=estimator, lw=1.2
                )
                panel.fill_between(
                    iterations,
                    [b.low for b in known],
                    [b.high for b in known],
                    color=f"C{number}",
                    alpha=0.1,
                    lw=0,
                )
        panel.set(title=game, xlabel="iteration", ylim=(0, 1))
    np.atleast_1d(axes)[0].set_ylabel("training success")
    figure.legend(*np.atleast_1d(axes)[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
