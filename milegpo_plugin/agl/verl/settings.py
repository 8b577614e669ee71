"""What the backend is told besides verl's own config."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from milegpo_plugin.config import CreditConfig, StateConfig, describe, read_yaml
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.trajectories import ReconstructOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSettings:
    """Settings of one training run; they travel to the Ray driver by pickle.

    Attributes:
        credit: how outcomes become step advantages.
        reconstruct: how spans become trajectories.
        dump_dir: folder for the trajectories and the credit of every step; None writes nothing.
        write_back: put the credit into the store, one annotation span per model call.
    """

    credit: CreditConfig = field(default_factory=CreditConfig)
    reconstruct: ReconstructOptions = field(default_factory=ReconstructOptions)
    dump_dir: Path | None = None
    write_back: bool = False


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


def resolve_credit(
    credit: CreditConfig | dict[str, Any] | str | None,
    *,
    estimator: str | None = None,
    on_failed: str | None = None,
    states: StateConfig | dict[str, Any] | None = None,
) -> CreditConfig:
    """One validated config; the keyword arguments win over ``credit``.

    Args:
        credit: a preset name, a mapping (``preset`` in it is applied first), a config, or None.
        estimator: ``CreditConfig.estimator``.
        on_failed: ``CreditConfig.on_failure``.
        states: ``CreditConfig.states``.

    Raises:
        ConfigError: a name or a value is not allowed.
    """
    given = {"estimator": estimator, "on_failure": on_failed, "states": states}
    changes = {name: value for name, value in given.items() if value is not None}
    if isinstance(credit, CreditConfig):
        return CreditConfig.load({name: getattr(credit, name) for name in credit.model_fields_set} | changes)
    if isinstance(credit, str):
        return CreditConfig.preset(credit, **changes)
    if credit is not None and not isinstance(credit, dict):
        raise ConfigError(f"credit must be a preset name, a mapping or a CreditConfig, got {credit!r}")
    values = dict(credit or {}) | changes
    preset = values.pop("preset", None)
    return CreditConfig.preset(preset, **values) if preset else CreditConfig.load(values)
