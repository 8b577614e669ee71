"""One tree of errors; each class is also the stdlib error a caller would expect.

A message names the file or the rollout, the rule, the value it got, and what to do.
The command line prints it as one line and exits with code 2.
"""

from __future__ import annotations


class MilegpoError(Exception):
    """Root of every error that this package raises on purpose."""


class ConfigError(MilegpoError, ValueError):
    """A setting is outside what it allows."""


class TraceError(MilegpoError, ValueError):
    """A trace or trajectory file cannot be read."""


class InputNotFoundError(MilegpoError, FileNotFoundError):
    """A path that the user named does not exist."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class CreditError(MilegpoError, ValueError):
    """Credit cannot be computed from this batch."""


class AgentError(MilegpoError, RuntimeError):
    """The user's agent cannot be loaded or run."""


class TrainingError(MilegpoError, RuntimeError):
    """Training cannot go on."""


class MissingDependencyError(MilegpoError, ImportError):
    """An optional dependency is needed and not installed."""
