"""Find the functions that users name: ``FILE.py:FUNCTION`` or ``package.module:FUNCTION``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from milegpo_plugin.errors import AgentError, InputNotFoundError


def split_target(target: str) -> tuple[str, str | None]:
    """``("FILE.py", "FUNCTION")``; the function is None when only a file is named."""
    where, colon, name = target.rpartition(":")
    if colon and name.isidentifier():
        return where, name
    return target, None


def load_function(target: str) -> Callable[..., Any]:
    """The function that ``target`` names.

    Raises:
        InputNotFoundError: the file does not exist.
        AgentError: the module fails to import, or has no such function.
    """
    where, name = split_target(target)
    if name is None:
        raise AgentError(f"{target}: must name a function as FILE.py:FUNCTION")
    module = _load_file(Path(where)) if where.endswith(".py") else _load_module(where)
    function = getattr(module, name, None)
    if not callable(function):
        raise AgentError(f"{where}: has no function {name!r}")
    return function  # type: ignore[no-any-return]


def require_file(path: str | Path) -> Path:
    """The path, if a file is there.

    Raises:
        InputNotFoundError: otherwise.
    """
    file = Path(path)
    if not file.is_file():
        raise InputNotFoundError(f"{file}: no such file")
    return file


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise AgentError(f"cannot import {name!r}: {error}") from error


def _load_file(path: Path) -> ModuleType:
    file = require_file(path).resolve()
    name = f"_milegpo_user_{file.stem}_{abs(hash(file))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise AgentError(f"{path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _prepend_to_path(str(file.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise AgentError(f"{path}: fails to import: {type(error).__name__}: {error}") from error
    return module


def _prepend_to_path(folder: str) -> None:
    """As running the file as a script would: its neighbours can be imported."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
