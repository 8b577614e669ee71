"""The task of a rollout: a named attribute, else the platform's id, else the first user message."""

from __future__ import annotations

from collections.abc import Sequence

from milegpo_plugin.adapters.messages import message_text
from milegpo_plugin.adapters.values import as_text
from milegpo_plugin.trajectories.options import ReconstructOptions
from milegpo_plugin.trajectories.rollouts import Rollout
from milegpo_plugin.types import Span


def task_of(rollout: Rollout, spans: Sequence[Span], options: ReconstructOptions) -> tuple[str, str | None]:
    """The task id and the flag that says where it is from, if it is not given.

    A rollout without any hint is its own task: its group is then of one, which gives no credit.
    """
    named = _named_task(spans, options.task_attribute) if options.task_attribute else None
    given = named or options.tasks.get(rollout.rollout_id)
    if given is not None:
        return given, None
    message = _first_user_message(rollout)
    if message is not None:
        return message, "task_from_message"
    return rollout.rollout_id, "no_task"


def _named_task(spans: Sequence[Span], name: str) -> str | None:
    for attributes in (*(span.attributes for span in spans), *(span.resource for span in spans)):
        value = attributes.get(name)
        if value is not None and value != "":
            return as_text(value)
    return None


def _first_user_message(rollout: Rollout) -> str | None:
    for call in rollout.calls:
        for message in call.read.messages:
            if message["role"] == "user" and message_text(message):
                return message_text(message)
    return None
