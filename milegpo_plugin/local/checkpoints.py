"""Checkpoints: policy, learner and what else a run needs to go on with the same numbers."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch

from milegpo_plugin.errors import InputNotFoundError
from milegpo_plugin.local.learner import Learner
from milegpo_plugin.local.model import Policy, load_policy
from milegpo_plugin.local.settings import LocalSettings

_LEARNER_FILE: Final = "learner.pt"
_EXTRA_FILE: Final = "extra.json"


class Checkpoint(NamedTuple):
    """A run as it was."""

    policy: Policy
    learner: Learner
    extra: dict[str, Any]


def save(path: str | Path, policy: Policy, learner: Learner, extra: dict[str, Any] | None = None) -> None:
    """Write a checkpoint folder; an earlier one there is replaced only when the new one is complete.

    Args:
        path: the folder.
        policy: written by ``save_pretrained``, so transformers and peft can load it.
        learner: optimizer, schedule and counters.
        extra: JSON values of the caller.
    """
    target = Path(path)
    fresh = target.with_name(target.name + ".writing")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    with policy.gate.updating():
        policy.save(fresh)
        torch.save(learner.state_dict(), fresh / _LEARNER_FILE)
    (fresh / _EXTRA_FILE).write_text(json.dumps(extra or {}, indent=1), encoding="utf-8")
    _replace(fresh, target)


def load(path: str | Path, settings: LocalSettings) -> Checkpoint:
    """Read a checkpoint folder; the model's settings are those it was saved with.

    Raises:
        InputNotFoundError: the folder is not a complete checkpoint.
    """
    folder = _complete(Path(path))
    policy = load_policy(folder)
    learner = Learner(policy, settings.learner)
    learner.load_state_dict(torch.load(folder / _LEARNER_FILE, map_location=policy.device, weights_only=True))
    extra = json.loads((folder / _EXTRA_FILE).read_text(encoding="utf-8"))
    return Checkpoint(policy, learner, extra)


def _replace(fresh: Path, target: Path) -> None:
    old = target.with_name(target.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        os.replace(target, old)
    os.replace(fresh, target)
    shutil.rmtree(old, ignore_errors=True)


def _complete(target: Path) -> Path:
    """The folder itself, or the one before it when a save was cut off between its two renames."""
    for folder in (target, target.with_name(target.name + ".old")):
        if (folder / _EXTRA_FILE).is_file() and (folder / _LEARNER_FILE).is_file():
            return folder
    raise InputNotFoundError(f"{target}: no complete checkpoint there")
