"""The part of a training algorithm that talks to the platform's store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agentlightning.algorithm import Algorithm
from agentlightning.types import LLM

from milegpo_plugin.agl.adapter import TrajectoryAdapter
from milegpo_plugin.agl.agent import RESOURCE
from milegpo_plugin.agl.rollouts import RolloutClient, Task
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.trajectories import ReconstructOptions


class StoreAlgorithm(Algorithm):
    """An algorithm that serves its own model and reads rollouts from the store."""

    async def publish_endpoint(self, base_url: str, *, model: str, api_key: str | None) -> str:
        """Tell the runners where the policy is; returns the id of the resources."""
        llm = LLM(endpoint=base_url, model=model, api_key=api_key)
        update = await self.get_store().add_resources({RESOURCE: llm})
        return str(update.resources_id)

    def rollout_client(
        self, options: ReconstructOptions, *, timeout: float, alive: Callable[[], None]
    ) -> RolloutClient:
        """A client of the store that rebuilds trajectories with the user's options."""
        return RolloutClient(self.get_store(), TrajectoryAdapter(options), timeout=timeout, alive=alive)


def read_tasks(dataset: Iterable[Any] | None, name: str) -> list[Task]:
    """Tasks of a platform dataset; the id is the sample's ``task_id`` or ``id``, else its position.

    Raises:
        ConfigError: a sample is not a mapping, or two samples share an id.
    """
    if dataset is None:
        return []
    samples = [dataset[i] for i in range(len(dataset))] if isinstance(dataset, Sequence) else list(dataset)
    tasks: dict[str, Task] = {}
    for position, sample in enumerate(samples):
        if not isinstance(sample, dict):
            raise ConfigError(f"{name} task {position}: must be a JSON object, got {type(sample).__name__}")
        task_id = str(sample.get("task_id", sample.get("id", f"{name}-{position}")))
        if task_id in tasks:
            raise ConfigError(
                f"{name} task {position}: the id {task_id!r} is used twice; give each task its own"
            )
        tasks[task_id] = Task(task_id, sample)
    return list(tasks.values())
