"""The nouns: spans as they arrive, steps and trajectories as everything else sees them.

``Trajectory`` is the line of ``trajectories.jsonl``. None means unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field

JSON: TypeAlias = Any
Message: TypeAlias = dict[str, Any]
"""OpenAI chat form: ``role, content, tool_calls?, tool_call_id?, name?``."""


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """A timed event on a span, or a log record that belongs to it."""

    name: str
    time_ns: int
    attributes: dict[str, JSON] = field(default_factory=dict)
    body: JSON = None


@dataclass(frozen=True, slots=True)
class SpanLink:
    """A pointer from one span to another (OpenTelemetry trace API, Link)."""

    trace_id: str
    span_id: str
    attributes: dict[str, JSON] = field(default_factory=dict)


@dataclass(slots=True)
class Span:
    """One finished OpenTelemetry span, whatever file or store it came from.

    Nobody changes one (a frozen dataclass takes several times as long to make). Ids are lowercase hex.
    Times are nanoseconds since the epoch. ``rollout_id`` and ``attempt_id`` are set when a platform
    knows them.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int
    end_ns: int
    kind: str = "INTERNAL"
    scope: str = ""
    status: str = "UNSET"
    status_message: str = ""
    attributes: dict[str, JSON] = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    logs: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()
    resource: dict[str, JSON] = field(default_factory=dict)
    dropped_attributes: int = 0
    rollout_id: str | None = None
    attempt_id: str | None = None
    sequence_id: int | None = None


class _Record(BaseModel):
    """Unknown fields are kept, so that a file written by a newer version survives."""

    model_config = ConfigDict(extra="allow")


Record = TypeVar("Record", bound=_Record)
_new = object.__new__
_set = object.__setattr__


def trusted(model: type[Record], fields: dict[str, Any]) -> Record:
    """An instance of ``fields``, neither checked nor copied: all fields of ``model``, in order, of right types.

    ``model_construct`` does the same more slowly, since it looks for aliases and defaults.
    """
    record: Record = _new(model)
    _set(record, "__dict__", fields)
    _set(record, "__pydantic_fields_set__", set(fields))
    _set(record, "__pydantic_extra__", {})
    _set(record, "__pydantic_private__", None)
    return record


class ToolCall(_Record):
    """One tool call of an action; ``arguments`` is the parsed JSON object."""

    id: str | None = None
    name: str
    arguments: dict[str, JSON] = Field(default_factory=dict)


class Action(_Record):
    """What the policy did: text, tool calls, or both."""

    text: str | None = None
    tool_calls: list[ToolCall] = Field(default_factory=list)


class Step(_Record):
    """One decision of the policy: what it saw and what it did.

    ``observation`` is what is new since the previous step of the same thread
    (step 0: everything but the system prompt).
    """

    state: str | None = None
    observation: list[Message] = Field(default_factory=list)
    agent: str | None = None
    action: Action = Field(default_factory=Action)
    reward: float | None = None
    prompt_token_ids: list[int] | None = None
    response_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    span_id: str | None = None
    flags: list[str] = Field(default_factory=list)


class Trajectory(_Record):
    """One rollout of one task, as a line of ``trajectories.jsonl``."""

    task_id: str
    rollout_id: str
    attempt_id: str | None = None
    reward: float | None = None
    success: bool | None = None
    final_state: str | None = None
    final_observation: str | None = None
    flags: list[str] = Field(default_factory=list)
    steps: list[Step] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TrajectoryGroup:
    """The rollouts of one task in one training batch."""

    task_id: str
    trajectories: Sequence[Trajectory]


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was left out, and why."""

    kind: str
    id: str
    reason: str
