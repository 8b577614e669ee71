"""The command line that the recipes share.

``--dry-run`` composes the config, checks the versions, and prints the plan without a GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agentlightning

from milegpo_plugin import MileGPO, UserAgent

HERE = Path(__file__).parent
AGENTS = HERE.parents[1] / "agents"
Tasks = list[dict[str, Any]]


def run(
    name: str,
    *,
    agent: str,
    reward: str | None = None,
    train: Callable[[], Tasks],
    validation: Callable[[], Tasks],
    train_size: int,
) -> None:
    """Train the agent with ``NAME.yaml``.

    Args:
        name: the recipe.
        agent: ``FILE.py:FUNCTION`` in ``agents/``, called with one task.
        reward: ``FILE.py:FUNCTION(task, result)``; None when the agent returns its reward.
        train: makes the training tasks; not called by a dry run.
        validation: makes the held-out tasks; not called by a dry run.
        train_size: number of training tasks, for the plan.
    """
    parser = argparse.ArgumentParser(description=f"Train with MileGPO on GPUs: {name}")
    parser.add_argument("--config", type=Path, default=HERE / f"{name}.yaml")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and stop; needs no GPU")
    parser.add_argument("--runners", type=int, default=32, help="agent processes, one rollout each at a time")
    options = parser.parse_args()
    algorithm = MileGPO.from_file(options.config)
    if options.dry_run:
        print(algorithm.plan(train_size))
        return
    trainer = agentlightning.Trainer(algorithm=algorithm, n_runners=options.runners)
    player = UserAgent(str(AGENTS / agent), str(HERE / reward) if reward else None)
    trainer.fit(player, train_dataset=train(), val_dataset=validation())
