"""Which rollout every tool run, reward and other span belongs to.

By the platform's ids; by what a reward is linked to; by the call id of a tool run; by the agent
around the span; by the trace, when one rollout has it; a reward at last by time, when only one
rollout can be meant.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TypeVar

from milegpo_plugin import semconv
from milegpo_plugin.adapters import RewardSignal, SpanKey, ToolRun
from milegpo_plugin.adapters.messages import tool_call_ids
from milegpo_plugin.adapters.values import first_text
from milegpo_plugin.trajectories.ancestors import nearest_ancestors
from milegpo_plugin.trajectories.evidence import Evidence
from milegpo_plugin.trajectories.rollouts import Rollout
from milegpo_plugin.types import Skipped, Span

_Key = TypeVar("_Key")


@dataclass(slots=True)
class RolloutEvidence:
    """What belongs to one rollout besides its calls; every list is in order of time."""

    spans: list[Span] = field(default_factory=list)
    tools: list[ToolRun] = field(default_factory=list)
    rewards: list[RewardSignal] = field(default_factory=list)


def share_evidence(
    rollouts: Sequence[Rollout], evidence: Evidence
) -> tuple[dict[Rollout, RolloutEvidence], list[Skipped]]:
    """The evidence of each rollout, and what belongs to none."""
    owners = _Owners(rollouts, evidence)
    shared = {rollout: RolloutEvidence() for rollout in rollouts}
    used: set[SpanKey] = set()
    for run in evidence.tools:
        owner = owners.of_tool(run)
        if owner is not None:
            shared[owner].tools.append(run)
            used.add(_key(run.span))
    skipped: list[Skipped] = []
    for signal in evidence.rewards:
        owner = owners.of_reward(signal)
        used.add(_key(signal.span))
        if owner is not None:
            shared[owner].rewards.append(signal)
        else:
            skipped.append(Skipped("reward", signal.span.span_id, "no single rollout it can belong to"))
    strays = []
    for span in evidence.spans:
        owner = owners.of_span(span)
        if owner is not None:
            shared[owner].spans.append(span)
        elif _key(span) not in used:
            strays.append(span)
    return shared, [*skipped, *_without_calls(strays, {rollout.rollout_id for rollout in rollouts})]


def _without_calls(strays: Iterable[Span], known: Collection[str]) -> list[Skipped]:
    """One entry for each rollout, attempt or trace in which no model call was traced."""
    first: dict[tuple[str, str], Span] = {}
    for span in strays:
        if span.rollout_id is None:
            place = ("trace", span.trace_id)
        elif span.rollout_id in known:
            place = ("attempt", f"{span.rollout_id}/{span.attempt_id}")
        else:
            place = ("rollout", span.rollout_id)
        first.setdefault(place, span)
    return [
        Skipped(kind, name, f"no model call was traced; its first span is {span.name!r}")
        for (kind, name), span in first.items()
    ]


class _Owners:
    """Indexes from ids to rollouts."""

    def __init__(self, rollouts: Sequence[Rollout], evidence: Evidence) -> None:
        self._rollouts = sorted(rollouts, key=lambda rollout: rollout.calls[0].start_ns)
        self._evidence = evidence
        self._platform = {(r.rollout_id, r.attempt_id): r for r in rollouts if r.by_platform}
        self._conversation = {rollout.rollout_id: rollout for rollout in rollouts}

    def of_span(self, span: Span) -> Rollout | None:
        """By platform ids, by the call or agent at or above the span, else by the trace.

        Agent Lightning's own spans are often traces of their own: those go by time.
        """
        if span.rollout_id is not None:
            return self._platform.get((span.rollout_id, span.attempt_id))
        key = _key(span)
        anchors = self._places.anchors
        anchored = anchors.get(key if key in anchors else self._nearest.get(key) or key)
        owner = anchored or _only(self._places.traces.get(span.trace_id, ()))
        if owner is None and span.name.startswith(semconv.AGL_SPANS):
            return self._by_time(span.start_ns)
        return owner

    def of_tool(self, run: ToolRun) -> Rollout | None:
        """By the id of the call it answers, else as any span."""
        asked = self._tool_call.get(run.call_id) if run.call_id else None
        return asked or self.of_span(run.span)

    def of_reward(self, signal: RewardSignal) -> Rollout | None:
        """By its links, as any span, by its conversation, else by time."""
        if signal.span.rollout_id is not None:
            return self.of_span(signal.span)
        for key, value in signal.links:
            linked = self._linked(key, value)
            if linked is not None:
                return linked
        conversation = first_text(signal.span.attributes, semconv.CONVERSATION_ID, semconv.SESSION_ID)
        named = self._conversation.get(conversation) if conversation else None
        return self.of_span(signal.span) or named or self._by_time(signal.time_ns)

    @cached_property
    def _places(self) -> _Places:
        """Made at the first use, as are the others: a platform's ids mostly tell all."""
        places = _Places()
        for rollout in self._rollouts:
            places.add(rollout)
        return places

    @cached_property
    def _nearest(self) -> Mapping[SpanKey, SpanKey | None]:
        others = (span for span in self._evidence.spans if span.rollout_id is None)
        return nearest_ancestors(self._evidence.tree, others, self._places.anchors.keys())

    @cached_property
    def _response(self) -> Mapping[str, Rollout | None]:
        index: dict[str, Rollout | None] = {}
        for rollout in self._rollouts:
            for call in rollout.calls:
                if call.read.response_id is not None:
                    _note(index, call.read.response_id, rollout)
        return index

    @cached_property
    def _tool_call(self) -> Mapping[str, Rollout | None]:
        index: dict[str, Rollout | None] = {}
        for rollout in self._rollouts:
            for call in rollout.calls:
                for call_id in tool_call_ids(call.read.reply) if call.read.reply else ():
                    _note(index, call_id, rollout)
        return index

    def _linked(self, key: str, value: str) -> Rollout | None:
        if key == semconv.RESPONSE_ID:
            return self._response.get(value)
        if key == "trace_id":
            return _only(self._places.traces.get(value, ()))
        if key == "span_id":
            return self._places.spans.get(value)
        return None

    def _by_time(self, time_ns: int) -> Rollout | None:
        """The latest rollout that began before, unless an earlier one was still going on then."""
        starts, ends = self._times
        before = bisect_left(starts, time_ns)
        if not before or self._rollouts[before - 1].by_platform:
            return None
        latest = self._rollouts[before - 1]
        earlier_end = ends[before - 2] if before > 1 else 0
        return latest if earlier_end <= starts[before - 1] else None

    @cached_property
    def _times(self) -> tuple[list[int], list[int]]:
        """When each rollout began, and when all up to it had ended."""
        starts = [rollout.calls[0].start_ns for rollout in self._rollouts]
        ends = (max(call.end_ns for call in rollout.calls) for rollout in self._rollouts)
        return starts, list(accumulate(ends, max))


class _Places:
    """The rollouts of traces, and of the spans of calls and of the agents around them."""

    def __init__(self) -> None:
        self.traces: defaultdict[str, dict[Rollout, None]] = defaultdict(dict)
        self.anchors: dict[SpanKey, Rollout | None] = {}
        self.spans: dict[str, Rollout | None] = {}

    def add(self, rollout: Rollout) -> None:
        """Note where ``rollout`` was recorded."""
        for call in rollout.calls:
            for span in (*call.spans, *(scope.span for scope in call.scopes)):
                self.traces[span.trace_id][rollout] = None
                _note(self.anchors, _key(span), rollout)
                _note(self.spans, span.span_id, rollout)


def _note(index: dict[_Key, Rollout | None], key: _Key, rollout: Rollout) -> None:
    """Remember the rollout of a key; a key of two rollouts tells nothing."""
    index[key] = rollout if index.get(key, rollout) is rollout else None


def _only(rollouts: Iterable[Rollout]) -> Rollout | None:
    found = list(rollouts)
    return found[0] if len(found) == 1 else None


def _key(span: Span) -> SpanKey:
    return span.trace_id, span.span_id
