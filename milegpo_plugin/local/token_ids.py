"""Token ids that an instrumentation left out, found again by the ids of the tool calls.

Many instrumentations drop vendor fields such as ``token_ids``, but all keep the id of a tool call, and
this server made it up.
"""

from __future__ import annotations

from collections.abc import Sequence

from milegpo_plugin.local.records import SamplingRecords
from milegpo_plugin.types import Step, Trajectory


def fill_token_ids(trajectories: Sequence[Trajectory], records: SamplingRecords) -> list[Trajectory]:
    """The trajectories with the token ids and log-probabilities of every step that called a tool."""
    return [
        trajectory.model_copy(update={"steps": [_filled(step, records) for step in trajectory.steps]})
        for trajectory in trajectories
    ]


def _filled(step: Step, records: SamplingRecords) -> Step:
    if step.prompt_token_ids and step.response_token_ids:
        return step
    for call in step.action.tool_calls:
        found = records.find_call(call.id) if call.id is not None else None
        if found is not None:
            prompt, response = found
            record = records.find(prompt, response)
            logprobs = step.logprobs if record is None else [float(value) for value in record.logprobs_T]
            ids = {"prompt_token_ids": list(prompt), "response_token_ids": list(response)}
            return step.model_copy(update={**ids, "logprobs": logprobs})
    return step
