"""Our settings inside the trainer's own config, where its Ray process finds them.

They are plain values under ``config.milegpo``: ``credit`` (with or without ``preset``),
``reconstruct``, ``dump_dir``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from milegpo_plugin.agl.settings import BackendSettings, resolve_credit
from milegpo_plugin.config import CreditConfig
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.trajectories import ReconstructOptions

SECTION: Final = "milegpo"
_KEYS: Final = frozenset({"credit", "reconstruct", "dump_dir"})
_OPTIONS: Final = frozenset({"reward_name", "success_threshold", "agents", "models", "span_names"})
"""The options of ``ReconstructOptions`` that a user may set; the trainer knows the others."""


def read_settings(section: Mapping[str, Any] | None) -> BackendSettings:
    """The settings in ``config.milegpo``, as a plain mapping; the defaults when there is none.

    Raises:
        ConfigError: a name or a value is not allowed.
    """
    values = dict(section or {})
    _refuse_unknown(SECTION, values, _KEYS)
    options = dict(values.get("reconstruct") or {})
    _refuse_unknown(f"{SECTION}.reconstruct", options, _OPTIONS)
    folder = values.get("dump_dir")
    return BackendSettings(
        credit=resolve_credit(values.get("credit")),
        reconstruct=ReconstructOptions(**options),
        dump_dir=None if folder is None else Path(folder),
    )


def write_settings(settings: BackendSettings) -> dict[str, Any]:
    """The section that :func:`read_settings` reads back.

    Raises:
        ConfigError: a state function cannot be imported by another process.
    """
    _require_importable(settings.credit)
    defaults = ReconstructOptions()
    options = {
        field.name: getattr(settings.reconstruct, field.name)
        for field in fields(defaults)
        if getattr(settings.reconstruct, field.name) != getattr(defaults, field.name)
    }
    _refuse_unknown(f"{SECTION}.reconstruct", options, _OPTIONS)
    return {
        "credit": settings.credit.model_dump(mode="json", exclude_none=True),
        "reconstruct": {
            name: list(value) if isinstance(value, tuple) else value for name, value in options.items()
        },
        "dump_dir": None if settings.dump_dir is None else str(settings.dump_dir.absolute()),
    }


def _require_importable(credit: CreditConfig) -> None:
    function = credit.states.function
    if callable(function) and (function.__module__ == "__main__" or "<" in function.__qualname__):
        raise ConfigError(
            "credit.states.function must be a function of a module that the trainer's Ray process can import, "
            f"got {function.__module__}:{function.__qualname__}: move it to a file and pass 'FILE.py:FUNCTION'"
        )


def _refuse_unknown(where: str, values: Mapping[str, Any], allowed: frozenset[str]) -> None:
    for name in values.keys() - allowed:
        raise ConfigError(f"{where}: must have no other keys than {', '.join(sorted(allowed))}, got {name!r}")
