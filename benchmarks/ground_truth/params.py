"""``params.yaml``, validated."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict

from milegpo_plugin.config import Preset

FILE: Final = Path(__file__).with_name("params.yaml")
EXACT: Final = "exact advantage"
"""The true advantage of the current policy, in the place of an estimate."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Family(_Strict):
    """Where MDPs come from, and where learning starts: a uniform policy or a success probability."""

    kind: Literal["regions", "layers", "textworld"]
    horizon: int
    start: Literal["uniform"] | float
    start_success: tuple[float, float] | None = None
    parameters: dict[str, Any] = {}


class EstimatorSpec(_Strict):
    """Settings of the credit engine, and what is done to its result."""

    preset: Preset = "alfworld"
    settings: dict[str, Any] = {}
    history: int = 1
    episode: Literal["constant", "faded", "fallback"] = "constant"
    average_actions: bool = False


class Measurement(_Strict):
    """Every strength with one group size, every group size with one strength."""

    groups: int
    strengths: tuple[float, ...]
    group_sizes: tuple[int, ...]
    strength: float
    group_size: int

    def points(self) -> list[tuple[float, int]]:
        """(policy strength, group size) of each measurement."""
        by_strength = [(strength, self.group_size) for strength in self.strengths]
        by_size = [(self.strength, size) for size in self.group_sizes]
        return sorted({*by_strength, *by_size})


class Learning(_Strict):
    """Settings of the tabular policy gradient."""

    iterations: int
    groups: int
    group_size: int
    clip: float
    learning_rate: float
    other_rates: tuple[float, ...]
    raw_rates: tuple[float, ...]


class Params(_Strict):
    """The whole file."""

    seeds: int
    families: dict[str, Family]
    estimators: dict[str, EstimatorSpec]
    reference: str
    baseline: str
    robustness: tuple[str, ...]
    measurement: Measurement
    learning: Learning

    def compared(self) -> list[str]:
        """Estimators that are measured everywhere; the truth is none."""
        return [name for name in self.robustness if name != EXACT]


def read_params(file: Path = FILE) -> Params:
    """The parameters of the benchmark."""
    return Params.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
