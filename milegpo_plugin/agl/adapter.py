"""Platform adapter: the spans of the store as trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentlightning.adapter import TraceAdapter

from milegpo_plugin.spans import spans_from_store
from milegpo_plugin.trajectories import Reconstruction, ReconstructOptions, build_trajectories


class TrajectoryAdapter(TraceAdapter[Reconstruction]):
    """Rebuild the rollouts in a list of store spans, whatever instrumentation made them.

    Unlike the built-in adapters it accepts an empty list and every dialect of
    ``milegpo_plugin.adapters``.
    """

    def __init__(self, options: ReconstructOptions | None = None) -> None:
        self.options = options or ReconstructOptions()

    def adapt(self, source: Sequence[Any], /) -> Reconstruction:
        """The trajectories of ``source`` (agentlightning spans), and what was skipped."""
        return build_trajectories(spans_from_store(source), self.options)
