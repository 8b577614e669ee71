"""Everything a training run is told: credit, model, server, learner, and the loop itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from milegpo_plugin.config import CreditConfig, describe, read_yaml
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.local.settings import LearnerSettings, LocalSettings, ModelSettings, ServerSettings


class LoopSettings(BaseModel):
    """The training loop: how many rollouts, how often to validate, when to give up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    iterations: int = Field(10, ge=1)
    tasks_per_iteration: int = Field(8, ge=1)
    rollouts_per_task: int = Field(8, ge=2, description="K, the size of a group")
    validate_every: int = Field(
        5, ge=1, description="validate after every so many iterations, and at both ends"
    )
    validation_temperature: float = Field(0.0, ge=0, description="0 is greedy")
    runners: int = Field(2, ge=1, description="agent processes; each runs one rollout at a time")
    rollout_timeout: float = Field(120.0, gt=0, description="seconds")
    seed: int = Field(0, ge=0, description="seed of weights, sampling and task order")
    tensorboard: bool = Field(False, description="write event files for TensorBoard into the run directory")


class TrainConfig(BaseModel):
    """A training run, as a YAML file gives it.

    Raises:
        ConfigError: from :meth:`load` and :meth:`from_file` when a name or value is not allowed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    train: LoopSettings = LoopSettings()
    credit: CreditConfig = CreditConfig.preset("robust")
    model: ModelSettings = ModelSettings()
    server: ServerSettings = ServerSettings()
    learner: LearnerSettings = LearnerSettings()
    threads: int | None = Field(None, ge=1, description="torch CPU threads; None leaves torch's choice")

    @property
    def local(self) -> LocalSettings:
        """The embedded backend's part; the rate falls to 0 over the whole run unless set."""
        iterations = self.learner.total_iterations or self.train.iterations
        return LocalSettings(
            model=self.model,
            server=self.server.model_copy(update={"seed": self.train.seed}),
            learner=self.learner.model_copy(update={"total_iterations": iterations, "seed": self.train.seed}),
            threads=self.threads,
            seed=self.train.seed,
        )

    @classmethod
    def load(cls, values: dict[str, Any]) -> TrainConfig:
        """Validate a plain mapping; ``credit: {preset: NAME, ...}`` starts from a preset.

        Without ``credit`` the preset is ``robust``: traps of groups that never succeed mislead training.
        """
        values = dict(values)
        credit = values.get("credit")
        if isinstance(credit, str):
            credit = {"preset": credit}
        if isinstance(credit, dict) and "preset" in credit:
            rest = {name: value for name, value in credit.items() if name != "preset"}
            values["credit"] = CreditConfig.preset(credit["preset"], **rest)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ConfigError(f"training config: {describe(error)}") from error

    @classmethod
    def from_file(cls, path: str | Path) -> TrainConfig:
        """Read a YAML mapping of these settings."""
        return cls.load(read_yaml(path))
