"""The trace adapter of the backend: triplets from any instrumentation in the store."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from agentlightning.adapter.triplet import TraceToTripletBase
from agentlightning.types import Triplet

from milegpo_plugin.agl.adapter import TrajectoryAdapter
from milegpo_plugin.trajectories import ReconstructOptions
from milegpo_plugin.types import Step, Trajectory

logger = logging.getLogger(__name__)


class TripletAdapter(TraceToTripletBase):
    """Store spans of every dialect in ``milegpo_plugin.adapters`` as Agent Lightning triplets.

    Token ids that only the LLM proxy saw are joined to the agent's own spans by response id.
    It also serves the stock ``VERL`` algorithm, where the built-in adapters find no triplets.
    """

    def __init__(self, options: ReconstructOptions | None = None) -> None:
        self.trajectories = TrajectoryAdapter(options)

    def adapt(self, source: Sequence[Any], /) -> list[Triplet]:
        """One triplet per model call with token ids, rollout by rollout; an empty list for no spans."""
        rebuilt = self.trajectories.adapt(source).trajectories
        steps = sum(len(trajectory.steps) for trajectory in rebuilt)
        found = [triplet for trajectory in rebuilt for triplet in triplets_of(trajectory)]
        if len(found) < steps:
            logger.warning(
                "%d of %d model calls have no token ids and give no triplet", steps - len(found), steps
            )
        return found


def triplets_of(trajectory: Trajectory) -> list[Triplet]:
    """The model calls of one rollout that have token ids; the last of them carries the outcome."""
    triplets = [
        _triplet(trajectory, index, step)
        for index, step in enumerate(trajectory.steps)
        if step.prompt_token_ids and step.response_token_ids
    ]
    if triplets and trajectory.reward is not None:
        triplets[-1].reward = trajectory.reward
    return triplets


def _triplet(trajectory: Trajectory, index: int, step: Step) -> Triplet:
    return Triplet(
        prompt={"token_ids": step.prompt_token_ids, "raw_content": step.observation},
        response={
            "token_ids": step.response_token_ids,
            "raw_content": step.action.model_dump(),
            "logprobs": step.logprobs,
        },
        reward=step.reward,
        metadata={
            "task_id": trajectory.task_id,
            "rollout_id": trajectory.rollout_id,
            "attempt_id": trajectory.attempt_id,
            "step_index": index,
            "span_id": step.span_id,
            "agent_name": step.agent,
            "state": step.state,
            "flags": step.flags,
        },
    )
