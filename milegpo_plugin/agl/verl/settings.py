"""A training run as a YAML file: verl's own config and what the backend is told besides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from milegpo_plugin.config import describe, read_yaml
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.trajectories import ReconstructOptions


class StepEstimate(BaseModel):
    """Model calls of one rollout, for the estimate of rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    typical: int = Field(ge=1)
    most: int = Field(ge=1)


class RunFile(BaseModel):
    """A training run as a YAML file gives it; ``verl`` is the config of verl.

    Raises:
        ConfigError: from :meth:`read`, when a name or value is not allowed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    verl: dict[str, Any]
    credit: dict[str, Any] | str | None = None
    reconstruct: ReconstructOptions = Field(default_factory=ReconstructOptions)
    dump_dir: Path | None = None
    write_back: bool = False
    steps_per_rollout: StepEstimate | None = None

    @classmethod
    def read(cls, path: str | Path) -> RunFile:
        """Read and validate the file."""
        try:
            return cls.model_validate(read_yaml(path))
        except ValidationError as error:
            raise ConfigError(f"{path}: {describe(error)}") from error
