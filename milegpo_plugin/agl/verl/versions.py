"""Which releases work together, checked before anything of theirs is imported.

verl 0.6.1 is the release that passes every test of this backend. 0.8.0 lost
``verl.workers.fsdp_workers``, which Agent Lightning 0.3 imports.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from milegpo_plugin.errors import ConfigError, MissingDependencyError

VERL_RELEASES: Final = ("0.6.1",)
PLATFORM_SERIES: Final = "0.3."
INSTALL: Final = "pip install 'milegpo-plugin[gpu]'"


def require_versions(find: Callable[[str], str] = version) -> None:
    """Refuse releases of verl and Agent Lightning that do not work, by name.

    Raises:
        MissingDependencyError: one of them is not installed.
        ConfigError: the installed release does not work with this backend.
    """
    verl, platform = _installed("verl", find), _installed("agentlightning", find)
    if _public(verl) not in VERL_RELEASES:
        wanted = " or ".join(VERL_RELEASES)
        raise ConfigError(
            f"verl must be {wanted}, got {verl}: pip install --no-deps verl=={VERL_RELEASES[0]}, or {INSTALL}"
        )
    if not platform.startswith(PLATFORM_SERIES):
        raise ConfigError(f"agentlightning must be {PLATFORM_SERIES}x for MileGPO, got {platform}: {INSTALL}")


def installed_or_none(name: str) -> str | None:
    """The installed version of a distribution, None when there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _installed(name: str, find: Callable[[str], str]) -> str:
    try:
        return find(name)
    except PackageNotFoundError as error:
        raise MissingDependencyError(f"MileGPO needs {name}: {INSTALL}") from error


def _public(release: str) -> str:
    """The release without a local label such as ``+cpu``."""
    return release.partition("+")[0]
