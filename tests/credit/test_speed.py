"""The benchmark runs and reports every figure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("command", [["benchmarks/credit_speed.py"], ["-m", "benchmarks.credit_speed"]])
def test_the_speed_benchmark_prints_its_table(command):
    done = subprocess.run(
        [sys.executable, *command, "--largest", "10000"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for figure in (
        "states given",
        "states computed",
        "plain Python / this package",
        "memory beyond the input",
    ):
        assert figure.split()[0] in done.stdout
