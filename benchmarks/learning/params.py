"""``params.yaml``, validated; and the settings of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field

from milegpo_plugin.local.train_config import TrainConfig

FILE: Final = Path(__file__).with_name("params.yaml")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GameParams(_Strict):
    """Longest rollout in steps, and what the player is told."""

    turns: int = Field(ge=1)
    instruction: str


class Params(_Strict):
    """The whole benchmark. ``train`` and ``credit`` are those of a training config."""

    seeds: int = Field(ge=1)
    training_instances: int = Field(ge=1)
    held_out_instances: int = Field(ge=1)
    games: dict[str, GameParams]
    estimators: dict[str, dict[str, Any]]
    credit: dict[str, Any]
    train: dict[str, Any]

    def config(self, estimator: str, seed: int) -> TrainConfig:
        """Settings of one run; all estimators share everything but what their own entry says."""
        loop = {**self.train["train"], "seed": seed}
        credit = {**self.credit, **self.estimators[estimator]}
        return TrainConfig.load({**self.train, "train": loop, "credit": credit, "threads": 1})


def read_params(file: Path = FILE) -> Params:
    """Read and validate the file."""
    return Params.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
