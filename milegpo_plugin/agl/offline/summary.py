"""What only the whole batch can decide, and what is reported about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from milegpo_plugin.agl.offline.parts import PartAccount
from milegpo_plugin.agl.offline.units import Account
from milegpo_plugin.credit.measures import combine
from milegpo_plugin.credit.result import FILTERED
from milegpo_plugin.errors import ConfigError, CreditError, TraceError
from milegpo_plugin.files import nothing_found, unused_rewards
from milegpo_plugin.groups import check_outcomes, nothing_usable
from milegpo_plugin.types import Skipped


@dataclass(frozen=True, slots=True)
class OfflineCredit:
    """The account of a finished job.

    ``metrics`` are those of :meth:`milegpo_plugin.credit.Credit.metrics` of the whole batch. ``skipped``
    has what could not be read, then what could not be used.
    """

    folder: Path
    parts: int
    rollouts: int
    steps: int
    metrics: Mapping[str, float]
    flags: Mapping[str, int]
    skipped: Sequence[Skipped]
    notes: Sequence[str]


@dataclass(slots=True)
class Tally:
    """Accounts of units and parts, as they come in."""

    read: Account = field(default_factory=Account)
    done: PartAccount = field(default_factory=PartAccount)
    parts: int = 0

    def add_unit(self, value: Mapping[str, Any]) -> None:
        """One unit was read."""
        _add(self.read, value)

    def add_part(self, value: Mapping[str, Any]) -> None:
        """One part was written."""
        _add(self.done, value)
        self.parts += 1

    def summarize(self, folder: Path, paths: Sequence[Path], rewards: Mapping[str, float]) -> OfflineCredit:
        """The account of the job.

        Raises:
            TraceError: the files hold no rollout.
            CreditError: no rollout has an outcome, or none can be used.
            ConfigError: the pattern of the states fits nowhere, or a rollout is in two units.
        """
        read, done = self.read, self.done
        _check_owners(read.owned)
        if not read.rollouts:
            raise TraceError(nothing_found(paths, read.skipped, read.spans))
        check_outcomes(read.rollouts, read.with_outcome > 0)
        if done.pattern_problem is not None and not done.pattern_fits:
            raise ConfigError(done.pattern_problem)
        if not done.figures:
            raise CreditError(nothing_usable(done.skipped))
        filtered = [Skipped("rollout", name, FILTERED) for name in done.filtered] if done.teaches else []
        left_out = [*done.skipped, *filtered, *done.notes]
        unused = len(rewards.keys() - set(read.rewarded)) if read.ready else 0
        return OfflineCredit(
            folder=folder,
            parts=self.parts,
            rollouts=read.rollouts,
            steps=done.steps,
            metrics=_metrics(done, left_out),
            flags=dict(read.flags),
            skipped=[*read.skipped, *left_out],
            notes=[*dict.fromkeys(read.notes), *unused_rewards(unused)],
        )


def _check_owners(owned: Iterable[str]) -> None:
    """Refuse traces that were rebuilt apart although they share something."""
    shared = sorted(name for name, units in Counter(owned).items() if units > 1)
    if shared:
        raise ConfigError(
            f"--whole-traces: {len(shared)} traces or rollouts are in two files, the first is {shared[0]!r}: "
            "leave it out, and all traces are read together"
        )


def load_account(text: bytes) -> dict[str, Any]:
    """An account from its JSON, with what was skipped as objects."""
    value: dict[str, Any] = orjson.loads(text)
    for name in ("skipped", "notes"):
        value[name] = [Skipped(**item) if isinstance(item, dict) else item for item in value[name]]
    return value


def _add(total: Account | PartAccount, value: Mapping[str, Any]) -> None:
    """Add counts, lists and counters; a truth about one is a truth about all."""
    for name, item in value.items():
        known = getattr(total, name)
        if isinstance(known, Counter):
            known.update(item)
        elif isinstance(known, list):
            known.extend(item)
        elif isinstance(known, bool):
            setattr(total, name, known or item)
        elif isinstance(known, int):
            setattr(total, name, known + item)
        elif item is not None:
            setattr(total, name, min(item, known or item))


def _metrics(done: PartAccount, left_out: Iterable[Skipped]) -> dict[str, float]:
    figures = combine(done.figures)
    figures["rollouts_skipped"] = float(sum(item.kind == "rollout" for item in done.skipped))
    reasons = Counter(item.reason for item in left_out)
    return figures | {f"skipped/{reason}": float(number) for reason, number in sorted(reasons.items())}
