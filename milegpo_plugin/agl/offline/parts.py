"""One part: whole tasks, credited as one batch, written as files, and an account of them.

Credit compares rollouts of one task only, so the parts of a batch get what the whole would. What is
decided over a whole batch is left to :mod:`milegpo_plugin.agl.offline.summary`: whether any rollout has
an outcome, whether the pattern of the states fits anywhere, and which groups ``filter_groups`` keeps.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import Credit, assign_credit
from milegpo_plugin.credit.filtering import teaching_groups
from milegpo_plugin.credit.result import STEP_FIELDS
from milegpo_plugin.errors import ConfigError, MilegpoError
from milegpo_plugin.files import write_records
from milegpo_plugin.groups import select_rollouts
from milegpo_plugin.states import StateKeys, state_keys
from milegpo_plugin.states.reader import StateReader
from milegpo_plugin.types import Skipped, Trajectory

Format: TypeAlias = Literal["jsonl", "parquet"]
Record: TypeAlias = dict[str, Any]

_NODE_TEXTS: Final = ("task_id", "state", "kind")
_NODE_COUNTS: Final = ("visits", "successes", "failures", "goal_distance")
_NODE_SCORES: Final = (
    "success_low",
    "success_high",
    "milestone_score",
    "trap_score",
    "branch_evidence",
    "progress_evidence",
    "calibrated_score",
    "milestone_potential",
    "trap_potential",
)


@dataclass(slots=True)
class PartAccount:
    """What became of the rollouts of one part.

    ``filtered`` are rollouts of groups that teach nothing; ``teaches`` says that there are other groups.
    ``pattern_problem`` says what check_pattern would; ``pattern_fits`` that the pattern fits a text.
    """

    steps: int = 0
    figures: list[dict[str, float]] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[Skipped] = field(default_factory=list)
    filtered: list[str] = field(default_factory=list)
    teaches: bool = False
    pattern_fits: bool = False
    pattern_problem: str | None = None

    def check(self, reader: StateReader) -> None:
        """Note whether the pattern fits; the whole batch decides."""
        self.pattern_fits |= reader.has_matched
        try:
            reader.check_pattern()
        except ConfigError as error:
            self.pattern_problem = str(error)


@dataclass(frozen=True, slots=True)
class PartWriter:
    """Credits parts and writes ``credit-00000.jsonl`` and, if wanted, ``nodes-00000.jsonl``.

    A part that is done again, on another machine perhaps, replaces its files in one move.
    """

    folder: Path
    config: CreditConfig
    format: Format
    nodes: bool

    def write(self, number: int, trajectories: Sequence[Trajectory]) -> PartAccount:
        """Credit one part and write it; lines are in order of task, rollout and step."""
        account = PartAccount()
        credits, silent = credit_part(trajectories, self.config, account)
        steps = merge(*(credit.step_records() for credit in credits), silent, key=itemgetter("task_id"))
        account.steps = self._write(f"credit-{number:05d}", steps)
        if self.nodes:
            nodes = merge(*(credit.node_records() for credit in credits), key=itemgetter("task_id"))
            self._write(f"nodes-{number:05d}", nodes)
        for credit in credits:
            _note_credit(credit, account)
        return account

    def _write(self, name: str, records: Iterable[Record]) -> int:
        path = self.folder / f"{name}.{self.format}"
        unfinished = self.folder / f".{name}.{os.getpid()}.{self.format}"
        count = (_write_parquet if self.format == "parquet" else write_records)(unfinished, records)
        unfinished.replace(path)
        return count


def credit_part(
    trajectories: Sequence[Trajectory], config: CreditConfig, account: PartAccount
) -> tuple[list[Credit], list[Record]]:
    """The credit of the tasks that have some, and the empty records of those without a usable rollout.

    A task that the credit refuses, as for two rollouts with the same ids, is left out with the reason.
    """
    usable: list[list[Trajectory]] = []
    silent: list[Record] = []
    for task in _tasks(trajectories):
        try:
            selection = select_rollouts(task, config)
            if selection.kept:
                usable.append(task)
            else:
                silent.extend(_unknown_records(task, selection.order, config, account))
                account.skipped.extend(selection.skipped)
        except MilegpoError as error:
            account.skipped.append(Skipped("task", task[0].task_id, str(error)))
    return list(_credit_tasks(usable, config, account)), silent


def _tasks(trajectories: Iterable[Trajectory]) -> list[list[Trajectory]]:
    """The rollouts of each task, tasks in order."""
    tasks: defaultdict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        tasks[trajectory.task_id].append(trajectory)
    return [tasks[task_id] for task_id in sorted(tasks)]


def _credit_tasks(
    tasks: Sequence[list[Trajectory]], config: CreditConfig, account: PartAccount
) -> Iterator[Credit]:
    """All tasks at once; where one is refused, each half for itself, down to the one at fault."""
    if not tasks:
        return
    batch = [trajectory for task in tasks for trajectory in task]
    keys = partial(state_keys, check=account.check)
    try:
        yield assign_credit(batch, config, state_keys=keys, is_part=True)
    except MilegpoError as error:
        if len(tasks) == 1:
            account.skipped.append(Skipped("task", batch[0].task_id, str(error)))
            return
        middle = len(tasks) // 2
        yield from _credit_tasks(tasks[:middle], config, account)
        yield from _credit_tasks(tasks[middle:], config, account)


def _unknown_records(
    task: Sequence[Trajectory], order: Iterable[int], config: CreditConfig, account: PartAccount
) -> Iterator[Record]:
    """Lines of rollouts whose credit is unknown, as ``Credit.step_records`` has them."""
    keys: StateKeys = state_keys(task, config.states, check=account.check)
    for index in order:
        trajectory = task[index]
        identity = {"task_id": trajectory.task_id, "rollout_id": trajectory.rollout_id}
        for step, state in enumerate(keys.steps[index]):
            yield identity | {"step": step, "state": state} | dict.fromkeys(STEP_FIELDS)


def _note_credit(credit: Credit, account: PartAccount) -> None:
    batch, names = credit.batch, credit.batch.name_I
    taught_K = teaching_groups(batch, credit.step_advantage_S, credit.config)[batch.group_K]
    account.filtered.extend(names[index][1] for index in batch.input_K[~taught_K].tolist())
    account.teaches |= bool(taught_K.any())
    account.skipped.extend(batch.skipped)
    account.notes.extend(batch.notes)
    figures = credit.metrics()
    account.figures.append(
        {name: value for name, value in figures.items() if not name.startswith("skipped/")}
    )


def _write_parquet(path: Path, records: Iterable[Record]) -> int:
    """The records as one table; columns that are empty in this part have the type of the others."""
    import pyarrow
    import pyarrow.parquet

    rows = list(records)
    table = pyarrow.Table.from_pylist(rows, schema=_schema("nodes" in path.name))
    pyarrow.parquet.write_table(table, path)
    return len(rows)


def _schema(nodes: bool) -> Any:
    import pyarrow

    texts, counts, scores = (
        (_NODE_TEXTS, _NODE_COUNTS, _NODE_SCORES)
        if nodes
        else (("task_id", "rollout_id", "state"), ("step",), STEP_FIELDS)
    )
    kinds = ((texts, pyarrow.string()), (counts, pyarrow.int64()), (scores, pyarrow.float64()))
    return pyarrow.schema([(name, kind) for names, kind in kinds for name in names])
