"""``milegpo train --backend verl``: an agent, tasks and a run file in; verl trains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import agentlightning

from milegpo_plugin.agl.agent import UserAgent
from milegpo_plugin.agl.verl.algorithm import MileGPO
from milegpo_plugin.agl.verl.settings import RunFile

RUNNERS: Final = 32


def make_algorithm(config: Path | None, run_dir: Path) -> MileGPO:
    """The run that a YAML file describes, see :class:`RunFile`; None is the paper's set-up.

    Trajectories and credit of every step go to ``run_dir`` unless the file names another folder.

    Raises:
        ConfigError: a setting is not allowed.
    """
    if config is None:
        return MileGPO(dump_dir=run_dir)
    named = RunFile.read(config).dump_dir
    return MileGPO.from_file(config, dump_dir=named or run_dir)


def train(
    algorithm: MileGPO,
    *,
    agent: str,
    reward: str | None,
    tasks: Sequence[dict[str, Any]],
    validation: Sequence[dict[str, Any]],
    runners: int | None,
) -> None:
    """Train with ``agentlightning.Trainer`` and verl; blocks until the run is done.

    Args:
        algorithm: from :func:`make_algorithm`.
        agent: see :class:`UserAgent`.
        reward: see there; None when the agent returns it.
        tasks: training tasks.
        validation: held-out tasks.
        runners: agent processes, one rollout each at a time; None takes 32.

    Raises:
        ConfigError: there is no validation task, or the platform cannot work with verl.
        MissingDependencyError: the inference engine is not installed.
    """
    trainer = agentlightning.Trainer(algorithm=algorithm, n_runners=runners or RUNNERS)
    trainer.fit(UserAgent(agent, reward), train_dataset=list(tasks), val_dataset=list(validation) or None)
