"""A user's function by name: ``path/to/file.py:function``, ``package.module:function`` or dotted."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from milegpo_plugin.errors import ConfigError


def load_function(name: str) -> Callable[..., Any]:
    """Import the function that ``name`` tells.

    Raises:
        ConfigError: the file, the module or the function does not exist, or it is not callable.
    """
    place, _, attribute = name.rpartition(":") if ":" in name else name.rpartition(".")
    if not place or not attribute:
        raise ConfigError(f"states.function: expected FILE.py:FUNCTION or module:function, got {name!r}")
    module = _module_from_file(Path(place)) if place.endswith(".py") else _module_by_name(place)
    function = getattr(module, attribute, None)
    if not callable(function):
        raise ConfigError(f"states.function: {place} has no function {attribute!r}")
    return function  # type: ignore[no-any-return]  # callable() narrows to an untyped function


def _module_from_file(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise ConfigError(f"states.function: {file}: no such file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _module_by_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"states.function: cannot import {name}: {error}") from error
