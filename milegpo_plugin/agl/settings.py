"""What every backend is told besides the trainer's own config."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from milegpo_plugin.config import CreditConfig, StateConfig
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.trajectories import ReconstructOptions

LEVELS: Final = ("transition", "trajectory")
"""``transition``: a row is a model call; ``trajectory``: a row is a conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSettings:
    """Settings of one training run.

    Attributes:
        credit: how outcomes become step advantages.
        reconstruct: how spans become trajectories.
        dump_dir: folder for the trajectories and the credit of every step; None writes nothing.
        write_back: put the credit into the store, one annotation span per model call (0.3 only).
    """

    credit: CreditConfig = field(default_factory=CreditConfig)
    reconstruct: ReconstructOptions = field(default_factory=ReconstructOptions)
    dump_dir: Path | None = None
    write_back: bool = False


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
        values = {name: getattr(credit, name) for name in credit.model_fields_set}
        return CreditConfig.load(values | changes)
    if isinstance(credit, str):
        return CreditConfig.preset(credit, **changes)
    if credit is not None and not isinstance(credit, dict):
        raise ConfigError(f"credit must be a preset name, a mapping or a CreditConfig, got {credit!r}")
    values = dict(credit or {}) | changes
    preset = values.pop("preset", None)
    return CreditConfig.preset(preset, **values) if preset else CreditConfig.load(values)
