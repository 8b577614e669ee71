"""The trainer's config, an OmegaConf tree. OmegaConf itself is installed with Agent Lightning 1.0 only."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def select(config: Mapping[str, Any], key: str) -> Any:
    """The value under a dotted key; None when a part of the path is missing."""
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def update(config: Any, key: str, value: Any) -> None:
    """Set a dotted key, and add what is missing on the path, also to a config with a fixed structure."""
    import_module("omegaconf").OmegaConf.update(config, key, value, merge=False, force_add=True)


def plain_section(config: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A section as plain mappings and lists, with interpolations resolved; empty when it is missing."""
    section = select(config, key)
    if section is None:
        return {}
    omegaconf = import_module("omegaconf").OmegaConf
    plain = omegaconf.to_container(section, resolve=True) if omegaconf.is_config(section) else section
    return dict(plain)
