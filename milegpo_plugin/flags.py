"""The documented flags of steps and rollouts: what is missing or odd, and the cure.

A flag says what the trace could not give. It never changes a value by itself.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Flag(NamedTuple):
    """One documented flag: ``meaning`` for people, ``cure`` when there is one."""

    meaning: str
    cure: str | None = None


ATTRIBUTE_LIMIT_CURE: Final = "export OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=100000 before the agent starts"

FLAGS: Final[dict[str, Flag]] = {
    "failed": Flag("the rollout ended with an infrastructure error, not with an outcome"),
    "no_reward": Flag("no reward is known for the rollout", "pass --rewards FILE.jsonl or emit a reward"),
    "no_model_call": Flag("no model call was traced", "instrument the client that calls the model"),
    "task_from_message": Flag("the task is the first user message", "pass --task-attribute NAME"),
    "missing_final_observation": Flag("the result of the last action was not recorded"),
    "no_token_ids": Flag("the trace has no token ids: credit yes, training rows no"),
    "no_sampling_record": Flag("the policy server does not know this completion; its row is not trained"),
    "error_status": Flag("the model call ended with an error status"),
    "missing_completion": Flag("the model call has no output"),
}
