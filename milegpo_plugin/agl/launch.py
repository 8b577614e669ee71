"""Start the platform: one algorithm, some runner processes, one store."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from milegpo_plugin.errors import MissingDependencyError

QUIET: Final[dict[str, str]] = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "AGENTOPS_LOGGING_TO_FILE": "False",
    "AGENTOPS_LOG_LEVEL": "CRITICAL",
    "TOKENIZERS_PARALLELISM": "false",
}
"""No network look-ups at import, no log file in the user's folder, no banners."""

LOGGERS: Final = (
    "agentlightning",
    "agentops",
    "LiteLLM",
    "uvicorn",
    "uvicorn.error",
    "uvicorn.access",
    "asyncio",
)


def fit(
    algorithm: Any,
    *,
    agent: str,
    reward: str | None,
    train: Sequence[dict[str, Any]],
    validation: Sequence[dict[str, Any]],
    runners: int,
    log_file: Path,
) -> None:
    """Train with ``agentlightning.Trainer``; blocks until the algorithm is done.

    Args:
        algorithm: an algorithm instance, such as ``LocalMileGPO``.
        agent: see :class:`milegpo_plugin.agl.agent.UserAgent`.
        reward: see there; None when the agent returns it.
        train: training tasks.
        validation: held-out tasks; may be empty.
        runners: runner processes; each runs one rollout at a time.
        log_file: where the platform's own log goes.

    Raises:
        MissingDependencyError: agentlightning is not installed.
    """
    os.environ.update({name: os.environ.get(name, value) for name, value in QUIET.items()})
    try:
        import agentlightning
    except ImportError as error:
        raise MissingDependencyError(
            "training needs agentlightning: pip install 'milegpo-plugin[local]' -c constraints-agl03.txt"
        ) from error
    from milegpo_plugin.agl.agent import UserAgent

    _log_to(log_file)
    trainer = agentlightning.Trainer(
        algorithm=algorithm,
        n_runners=runners,
        strategy={"type": "cs", "n_runners": runners, "server_port": _free_port()},
        runner={"type": "agentlightning.LitAgentRunner", "poll_interval": 0.2, "interval_jitter": 0.05},
    )
    trainer.fit(UserAgent(agent, reward), train_dataset=list(train), val_dataset=list(validation) or None)


def _log_to(path: Path) -> None:
    """The platform's log goes to a file; the terminal belongs to the progress display."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(name)s %(levelname)s %(message)s"))
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
