"""What to try when a batch gives the credit little to work with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LOW_COVERAGE: Final = 0.3
MOSTLY: Final = 0.5
_SHARE_STATES: Final = (
    "mask what differs between runs (states.masks), pick the state out of the prompt (states.pattern), "
    "or merge similar texts (states.similarity) with --config"
)


def credit_advice(metrics: Mapping[str, float]) -> list[str]:
    """Warnings about a batch, each naming the option to try.

    Args:
        metrics: of :meth:`milegpo_plugin.credit.Credit.metrics`.
    """
    advice = []
    groups, singletons = metrics["groups"], metrics["groups_of_one"]
    if singletons:
        advice.append(
            f"{singletons:.0f} of {groups:.0f} groups hold one rollout and get no outcome advantage: "
            "the task id must be shared by all rollouts of a task (--task-attribute NAME)"
        )
    if metrics["coverage"] < LOW_COVERAGE and singletons < MOSTLY * groups:
        advice.append(
            f"only {100 * metrics['coverage']:.0f}% of the steps start in a state that two rollouts share: "
            f"{_SHARE_STATES}"
        )
    elif metrics["states_shared"] < MOSTLY and singletons < MOSTLY * groups:
        advice.append(
            f"{100 * (1 - metrics['states_shared']):.0f}% of the states are seen by one rollout only: "
            f"{_SHARE_STATES}"
        )
    silent = metrics["groups_without_signal"] - singletons
    if silent > MOSTLY * groups:
        advice.append(
            f"{silent:.0f} of {groups:.0f} groups end all alike ({metrics['groups_rescued']:.0f} got step credit "
            "all the same): use tasks of middling difficulty, or more rollouts a task; where all fail, "
            "require_success: true (preset robust) keeps their traps out of training"
        )
    return advice
