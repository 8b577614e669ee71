"""``LocalMileGPO``: the training algorithm of the embedded torch backend.

Usage::

    trainer = agentlightning.Trainer(algorithm=LocalMileGPO("config.yaml"), n_runners=2)
    trainer.fit(my_agent, train_dataset=tasks, val_dataset=held_out)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from milegpo_plugin.agl.algorithm import StoreAlgorithm, read_tasks
from milegpo_plugin.agl.rollouts import Collected, RolloutClient, Task
from milegpo_plugin.config import CreditConfig
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.local import checkpoints
from milegpo_plugin.local.learner import Learner
from milegpo_plugin.local.loop import Observer, TrainingLoop
from milegpo_plugin.local.model import build_policy, use_threads
from milegpo_plugin.local.run_directory import RunDirectory
from milegpo_plugin.local.server import PolicyServer
from milegpo_plugin.local.tensorboard import event_files, require_tensorboard
from milegpo_plugin.local.train_config import TrainConfig
from milegpo_plugin.trajectories import ReconstructOptions


class LocalMileGPO(StoreAlgorithm):
    """Serve a policy, collect rollouts through the platform, assign step credit, update.

    Args:
        config: a :class:`TrainConfig`, a mapping of its fields, or a YAML file.
        credit: a preset name, a mapping or a :class:`CreditConfig`; wins over ``config``.
        run_dir: folder of this run.
        sample_texts: texts from which the tiny model's tokenizer takes its words.
        reconstruct: how spans become trajectories.
        resume: go on from the last checkpoint in ``run_dir``.
        observer: shows the progress; None shows nothing.

    Raises:
        ConfigError: a setting is not allowed, or ``run_dir`` already holds a run.
        MissingDependencyError: ``train.tensorboard`` is set and the package is not installed.
    """

    def __init__(
        self,
        config: TrainConfig | dict[str, Any] | str | Path | None = None,
        *,
        credit: CreditConfig | dict[str, Any] | str | None = None,
        run_dir: str | Path = "runs/local",
        sample_texts: Sequence[str] = (),
        reconstruct: ReconstructOptions | None = None,
        resume: bool = False,
        observer: Observer | None = None,
    ) -> None:
        self.config = _with_credit(_as_config(config), credit)
        if self.config.train.tensorboard:
            require_tensorboard()
        self.directory = RunDirectory(run_dir, resume=resume)
        self.sample_texts = list(sample_texts)
        self.reconstruct = reconstruct or ReconstructOptions()
        self.resume = resume
        self.observer = observer or Silent()

    async def run(self, train_dataset: Any = None, val_dataset: Any = None) -> None:
        """Train on the platform's datasets; called by ``agentlightning.Trainer``.

        Raises:
            TrainingError: the policy server died, or no rollout can be used.
        """
        train, validation = read_tasks(train_dataset, "train"), read_tasks(val_dataset, "validation")
        if not train:
            raise ConfigError("there are no training tasks; pass at least one")
        loop = self._prepare([*train, *validation])
        with (
            PolicyServer(loop.policy, self.config.local.server) as server,
            self._observing() as loop.observer,
        ):
            loop.collect = await self._collector(server)
            await loop.run(train, validation)

    def _prepare(self, tasks: Sequence[Task]) -> TrainingLoop:
        """Model, learner and loop, fresh or from the last checkpoint."""
        use_threads(self.config.threads)
        self.directory.write_config(self.config.model_dump(mode="json"))
        last = self.directory.checkpoint("last")
        if self.resume and last.exists():
            policy, learner, extra = checkpoints.load(last, self.config.local)
            self.directory.keep_metrics_until(extra["iteration"])
        else:
            texts = self.sample_texts or [text for task in tasks for text in _texts(task.input)]
            policy = build_policy(self.config.model, sample_texts=texts, seed=self.config.train.seed)
            learner, extra = Learner(policy, self.config.local.learner), {}
        return TrainingLoop(
            self.config,
            policy,
            learner,
            _not_connected,
            self.directory,
            self.observer,
            iteration=extra.get("iteration", 0),
            best=extra.get("best"),
            elapsed=extra.get("elapsed", 0.0),
        )

    def _observing(self) -> AbstractContextManager[Observer]:
        if not self.config.train.tensorboard:
            return nullcontext(self.observer)
        folder, first_step = self.directory.tensorboard_folder, self.directory.next_iteration
        return event_files(folder, self.observer, first_step=first_step)

    async def _collector(self, server: PolicyServer) -> Callable[..., Any]:
        settings = self.config.train
        client = self.rollout_client(self.reconstruct, timeout=settings.rollout_timeout, alive=server.check)
        resources = await self.publish_endpoint(
            server.base_url, model=server.settings.model_name, api_key=server.settings.api_key
        )
        return _Collector(client, server, resources, settings.validation_temperature)


class _Collector:
    """Runs tasks through the platform, at the temperature of the phase."""

    def __init__(
        self, client: RolloutClient, server: PolicyServer, resources_id: str, validation_temperature: float
    ) -> None:
        self._client = client
        self._server = server
        self._resources_id = resources_id
        self._validation_temperature = validation_temperature

    async def __call__(
        self, tasks: Sequence[Task], *, repeats: int, validation: bool, on_progress: Callable[[int], None]
    ) -> Collected:
        self._server.default_temperature = self._validation_temperature if validation else 1.0
        return await self._client.collect(
            tasks,
            repeats=repeats,
            mode="val" if validation else "train",
            resources_id=self._resources_id,
            on_progress=on_progress,
        )


class Silent:
    """An observer that shows nothing."""

    def on_rollouts(self, phase: str, done: int, total: int) -> None:
        """Ignore it."""

    def on_iteration(self, metrics: dict[str, Any]) -> None:
        """Ignore it."""


async def _not_connected(*_: Any, **__: Any) -> Collected:
    raise ConfigError("the loop has no platform to collect from")


def _as_config(config: TrainConfig | dict[str, Any] | str | Path | None) -> TrainConfig:
    if isinstance(config, TrainConfig):
        return config
    if isinstance(config, str | Path):
        return TrainConfig.from_file(config)
    return TrainConfig.load(config or {})


def _with_credit(config: TrainConfig, credit: CreditConfig | dict[str, Any] | str | None) -> TrainConfig:
    if credit is None:
        return config
    if isinstance(credit, str):
        credit = CreditConfig.preset(credit)
    elif isinstance(credit, dict):
        credit = CreditConfig.load(credit)
    return config.model_copy(update={"credit": credit})


def _texts(value: Any) -> list[str]:
    """Every string in a task, for the words of a tokenizer."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return []
