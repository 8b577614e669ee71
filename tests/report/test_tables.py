"""What the terminal and a pipe get."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.table import Table

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit
from milegpo_plugin.report.tables import STRONGEST, flag_table, node_table, skip_table, trajectory_table
from milegpo_plugin.types import Skipped, Trajectory


def printed(table: Table | None, *, terminal: bool = False) -> str:
    assert table is not None
    stream = io.StringIO()
    Console(file=stream, width=200, force_terminal=terminal).print(table)
    return stream.getvalue()


def test_the_strongest_milestones_and_traps_are_listed_with_text_and_counts(
    play_houses: Callable[..., list[Trajectory]],
) -> None:
    records = list(assign_credit(play_houses(8, 8, 50), CreditConfig()).node_records())
    for kind, score in (("milestone", "calibrated_score"), ("trap", "trap_score")):
        lines = printed(node_table(records, kind)).splitlines()
        assert len(lines) == STRONGEST + 1
        strongest = max((node for node in records if node["kind"] == kind), key=lambda node: node[score])
        assert lines[1].startswith(strongest["state"][:50])
        assert f"{strongest[score]:.2f}" in lines[1]
        assert f" {strongest['visits']} " in lines[1]


def test_a_batch_without_traps_has_no_table_of_them(fork: Callable[[], list[Trajectory]]) -> None:
    assert node_table(assign_credit(fork()[:2], CreditConfig()).node_records(), "trap") is None


def test_a_pipe_gets_text_without_escape_codes(fork: Callable[[], list[Trajectory]]) -> None:
    assert "\x1b" in printed(trajectory_table(fork()), terminal=True)
    plain = printed(trajectory_table(fork()))
    assert "\x1b" not in plain
    assert plain.splitlines()[1].split()[:3] == ["fork", "4", "12"]


@pytest.mark.parametrize("terminal", [False, True])
def test_trace_text_is_neither_markup_nor_escape_codes(
    hostile_batch: Callable[[], list[Trajectory]], terminal: bool
) -> None:
    batch = [t.model_copy(update={"task_id": f"[red]x[/red] \x1b[31m {t.task_id}"}) for t in hostile_batch()]
    for table in (
        trajectory_table(batch),
        flag_table(batch),
        skip_table([Skipped("[bold]k", "\x1b]0;title\x07", "\x1b[2J [link=x]reason[/link]")]),
        node_table(assign_credit(batch, CreditConfig()).node_records(), "milestone"),
    ):
        text = printed(table, terminal=terminal)
        assert not any(code in text for code in ("\x1b[31m", "\x1b[2J", "\x1b]", "\x07", "\u202e"))
    assert "[red]x[/red]" in printed(trajectory_table(batch), terminal=terminal)
