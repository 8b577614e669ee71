"""MileGPO's credit assignment, equation by equation.

Every room takes arrays and gives a frozen dataclass of arrays: no I/O, no logging, no state.
"""

from __future__ import annotations

from collections.abc import Sequence

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit.advantages import penalize_invalid_actions
from milegpo_plugin.credit.calibration import calibrate_scores
from milegpo_plugin.credit.diagnostics import Diagnostics, diagnose
from milegpo_plugin.credit.estimators import estimate_advantages
from milegpo_plugin.credit.filtering import trained_rollouts
from milegpo_plugin.credit.graph import build_state_graph
from milegpo_plugin.credit.milestones import score_candidates
from milegpo_plugin.credit.planning import plan_returns
from milegpo_plugin.credit.result import Credit, collect_credit
from milegpo_plugin.credit.shaping import shape_returns
from milegpo_plugin.credit.uncertainty import success_intervals
from milegpo_plugin.groups import Batch, StateKeyFunction, build_batch
from milegpo_plugin.states import state_keys as canonical_keys
from milegpo_plugin.types import Trajectory

__all__ = ["Credit", "Diagnostics", "assign_credit", "credit_of_batch", "diagnose"]


def assign_credit(
    trajectories: Sequence[Trajectory],
    config: CreditConfig | None = None,
    *,
    state_keys: StateKeyFunction = canonical_keys,
    is_part: bool = False,
) -> Credit:
    """The credit of every step of one batch (method.md; MileGPO, arXiv 2608.19803).

    Rollouts are compared within their task. ``state_keys`` names the state of every step. ``is_part`` says
    that the batch is larger, so that its other rollouts may have the outcomes.

    Raises:
        CreditError: no rollout has an outcome or none can be used, a reward is not finite, or two
            trajectories carry the same ids.
    """
    config = config or CreditConfig()
    return credit_of_batch(build_batch(trajectories, config, state_keys, is_part=is_part), config)


def credit_of_batch(batch: Batch, config: CreditConfig) -> Credit:
    """The same from arrays."""
    graph = build_state_graph(batch)
    intervals = success_intervals(graph, config.confidence)
    candidates = score_candidates(graph, config)
    calibration = calibrate_scores(graph, candidates, intervals, config)
    shaping = shape_returns(graph, candidates, calibration, intervals, config)
    if config.estimator == "plangpo":
        shaping = plan_returns(batch, shaping, config)
    advantages = penalize_invalid_actions(estimate_advantages(batch, shaping, config), batch, config)
    trained_K = trained_rollouts(batch, advantages.step_advantage_S, config)
    return collect_credit(
        config, batch, graph, intervals, candidates, calibration, shaping, advantages, trained_K
    )
