"""``MileGPO``: Agent Lightning's verl algorithm with step credit.

Usage::

    trainer = agentlightning.Trainer(algorithm=MileGPO(config, credit="robust"), n_runners=16)
    trainer.fit(my_agent, train_dataset=tasks, val_dataset=held_out)
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from pickle import PicklingError
from typing import Any

import cloudpickle
from agentlightning.algorithm.verl import VERL

from milegpo_plugin.agl.settings import BackendSettings, resolve_credit
from milegpo_plugin.agl.verl.checks import prepare_config
from milegpo_plugin.agl.verl.daemon import MileGPODaemon
from milegpo_plugin.agl.verl.paper import PAPER_CONFIG
from milegpo_plugin.agl.verl.plan import Plan, make_plan
from milegpo_plugin.agl.verl.settings import RunFile, StepEstimate
from milegpo_plugin.agl.verl.trainer import MileGPOTrainer
from milegpo_plugin.agl.verl.triplets import TripletAdapter
from milegpo_plugin.agl.verl.versions import INSTALL, installed_or_none
from milegpo_plugin.config import CreditConfig, StateConfig
from milegpo_plugin.errors import ConfigError, MissingDependencyError
from milegpo_plugin.trajectories import ReconstructOptions


class MileGPO(VERL):
    """Train with verl on the advantage of every step.

    Args:
        config: the mapping that ``VERL`` takes. ``algorithm.adv_estimator`` becomes ``milegpo``.
            None is the paper's set-up.
        credit: a preset (``webshop``, ``alfworld``), a mapping of :class:`CreditConfig`, or one.
        estimator: ``milegpo``, ``graphgpo``, ``gigpo``, ``hgpo``, ``grpo`` or ``rloo``.
        on_failed: a rollout that broke is left out (``drop``), counted as reward 0 (``zero``), or
            used as it is (``keep``).
        states: how an observation becomes a state, see :class:`StateConfig`.
        reconstruct: how spans become trajectories, see :class:`ReconstructOptions`.
        dump_dir: folder for the trajectories and the credit of every step.
        write_back: put the credit into the store as annotation spans.

    Raises:
        ConfigError: a setting is not allowed, or contradicts step credit; the text names the line.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        credit: CreditConfig | dict[str, Any] | str | None = None,
        estimator: str | None = None,
        on_failed: str | None = None,
        states: StateConfig | dict[str, Any] | None = None,
        reconstruct: ReconstructOptions | None = None,
        dump_dir: str | Path | None = None,
        write_back: bool = False,
    ) -> None:
        given = deepcopy(PAPER_CONFIG if config is None else dict(config))
        self.settings = BackendSettings(
            credit=resolve_credit(credit, estimator=estimator, on_failed=on_failed, states=states),
            reconstruct=reconstruct or ReconstructOptions(),
            dump_dir=Path(dump_dir).absolute() if dump_dir is not None else None,
            write_back=write_back,
        )
        self.steps_per_rollout: StepEstimate | None = None
        self._triplets = TripletAdapter(self.settings.reconstruct)
        super().__init__(
            given, trainer_cls=MileGPOTrainer, daemon_cls=partial(MileGPODaemon, settings=self.settings)
        )
        prepare_config(self.config, given, self.settings.credit)

    @classmethod
    def from_file(cls, path: str | Path, **changes: Any) -> MileGPO:
        """A run from a YAML file, see :class:`RunFile`; ``changes`` are arguments that win over it."""
        file = RunFile.read(path)
        arguments: dict[str, Any] = {
            "credit": file.credit,
            "reconstruct": file.reconstruct,
            "dump_dir": file.dump_dir,
            "write_back": file.write_back,
        }
        algorithm = cls(file.verl, **(arguments | changes))
        algorithm.steps_per_rollout = file.steps_per_rollout
        return algorithm

    def get_adapter(self) -> TripletAdapter:
        """The adapter of every dialect; the platform's default one knows two."""
        return self._triplets

    def plan(self, train_tasks: int | None = None) -> Plan:
        """What a run would do, without a GPU: versions, sizes, estimated rows, what is missing.

        Args:
            train_tasks: size of the training set, for the number of steps.
        """
        return make_plan(self.config, self.settings, self.steps_per_rollout, train_tasks)

    def run(self, train_dataset: Any = None, val_dataset: Any = None) -> None:
        """Train; called by ``agentlightning.Trainer``.

        Raises:
            ConfigError: the platform around it cannot work with verl.
            MissingDependencyError: the inference engine is not installed.
        """
        self._check_store()
        if train_dataset is None or val_dataset is None:
            raise ConfigError("pass train_dataset and val_dataset to Trainer.fit")
        if self.config.actor_rollout_ref.rollout.name == "vllm" and installed_or_none("vllm") is None:
            raise MissingDependencyError(f"actor_rollout_ref.rollout.name=vllm needs vllm: {INSTALL}")
        super().run(train_dataset, val_dataset)

    def _check_store(self) -> None:
        """The store must reach the Ray driver, which is another process."""
        try:
            store = self.get_store()
        except ValueError as error:
            raise ConfigError("MileGPO runs inside agentlightning.Trainer(algorithm=…).fit(…)") from error
        if not store.capabilities.get("zero_copy"):
            raise ConfigError(
                f"{type(store).__name__} lives in one process and Ray would copy it: use Trainer(strategy='cs')"
            )
        try:
            cloudpickle.dumps(store)
        except (TypeError, AttributeError, PicklingError) as error:
            raise ConfigError(
                f"{type(store).__name__} cannot be sent to Ray ({error}): install 'fastapi<=0.124.4' "
                "'starlette<=0.50.0'"
            ) from error
