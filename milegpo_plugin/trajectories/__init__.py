"""Spans → trajectories: deduplicate, order, thread, attach tool results and rewards.

Knows no dialect: everything is read through ``adapters``. The result does not depend on the
order of the spans. Nothing is guessed: what a trace cannot give is a flag, what is left out is
counted with its reason.
"""

from milegpo_plugin.trajectories.build import build_trajectories
from milegpo_plugin.trajectories.options import Reconstruction, ReconstructOptions
from milegpo_plugin.trajectories.partition import Partition

__all__ = ["Partition", "ReconstructOptions", "Reconstruction", "build_trajectories"]
