"""The command line: reads options, calls the rooms, prints what they found.

Bad input prints one line to standard error and exits with code 2.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

import typer

from milegpo_plugin.cli.credit import credit, diagnose
from milegpo_plugin.cli.receive import receive
from milegpo_plugin.cli.report import report
from milegpo_plugin.cli.traces import trajectories
from milegpo_plugin.cli.train import quickstart, train
from milegpo_plugin.errors import MilegpoError

app = typer.Typer(
    name="milegpo",
    help="Step-level credit for unmodified tool-using agents, from their OpenTelemetry spans.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS: Final[tuple[tuple[Callable[..., None], str], ...]] = (
    (quickstart, "quickstart --seed 1 --run-dir runs/seed1"),
    (train, "train --agent agents/coin_player.py:play --tasks tasks.jsonl --reward reward.py:score"),
    (trajectories, "trajectories traces.otlp.jsonl --rewards rewards.jsonl -o trajectories.jsonl"),
    (receive, "receive --port 4318 -o runs/live"),
    (credit, "credit trajectories.jsonl --preset webshop -o credit.jsonl --nodes nodes.jsonl"),
    (diagnose, "diagnose trajectories.jsonl --preset webshop -o diagnostics.json"),
    (report, "report trajectories.jsonl --compare graphgpo -o report.html"),
)
for _command, _example in COMMANDS:
    app.command(epilog=f"Example: milegpo {_example}")(_command)


def main() -> None:
    """Entry point; the package's own errors become one line and exit code 2."""
    try:
        app()
    except MilegpoError as error:
        sys.stderr.write(f"milegpo: {' '.join(str(error).split())}\n")
        raise SystemExit(2) from None
