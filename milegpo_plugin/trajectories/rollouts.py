"""Which calls are one rollout.

A platform's rollout id decides. Without one: the outermost session or conversation id; else the
run of the outermost agent around the call; else the thread; else the trace. A trace with at most
one conversation of several calls is one rollout, helper calls included. One session id on runs
that begin with the same request is a constant that somebody set: those runs are told apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from milegpo_plugin.adapters.messages import message_text
from milegpo_plugin.trajectories.calls import Call, conversation_of, tool_names
from milegpo_plugin.trajectories.threads import link_calls, order_calls
from milegpo_plugin.trajectories.unions import Unions


@dataclass(eq=False, slots=True)
class Rollout:
    """The calls of one rollout in order; ids are those of the platform, else found or made."""

    rollout_id: str
    attempt_id: str | None
    calls: list[Call]
    by_platform: bool = False
    flags: set[str] = field(default_factory=set)


def group_rollouts(calls: Sequence[Call]) -> list[Rollout]:
    """Link the calls and group them, in order of their first calls."""
    platform: defaultdict[tuple[str, str | None], list[Call]] = defaultdict(list)
    others: list[Call] = []
    for call in calls:
        ids = platform_ids(call)
        if ids is None:
            others.append(call)
        else:
            platform[ids].append(call)
    rollouts = [_platform_rollout(ids, members) for ids, members in platform.items()]
    link_calls(others, one_rollout=False)
    rollouts.extend(_found_rollouts(others))
    return sorted(rollouts, key=lambda rollout: (rollout.calls[0].start_ns, rollout.rollout_id))


def platform_ids(call: Call) -> tuple[str, str | None] | None:
    """Rollout and attempt id of the first copy that has them."""
    for span in call.spans:
        if span.rollout_id is not None:
            return span.rollout_id, span.attempt_id
    return None


def _platform_rollout(ids: tuple[str, str | None], calls: list[Call]) -> Rollout:
    link_calls(calls, one_rollout=True)
    return Rollout(ids[0], ids[1], order_calls(calls), by_platform=True)


def _found_rollouts(calls: Sequence[Call]) -> list[Rollout]:
    groups = _groups(calls)
    ids = _rollout_ids(groups)
    return [Rollout(name, None, order_calls(group)) for name, group in zip(ids, groups, strict=True)]


def _groups(calls: Sequence[Call]) -> list[list[Call]]:
    conversations = _conversations(calls)
    unions = Unions(calls)
    _join_equal(unions, {call: (conversations[call], _scope_key(call)) for call in calls if call.scopes})
    for call in calls:
        _join_thread(unions, call, conversations)
    loose = [
        group for group in unions.groups() if not any(conversations[call] or call.scopes for call in group)
    ]
    for trace in _single_conversation_traces(loose):
        _join_all(unions, trace)
    sessions: defaultdict[str, list[list[Call]]] = defaultdict(list)
    for run in unions.groups():
        name = conversations[run[0]]
        if name is not None:
            sessions[name].append(run)
    for runs in sessions.values():
        for rollout in _split_session(runs):
            _join_all(unions, rollout)
    return unions.groups()


def _conversations(calls: Sequence[Call]) -> dict[Call, str | None]:
    """The session of each call; a call without one is in its predecessor's."""
    conversations: dict[Call, str | None] = {}
    for call in calls:
        inherited = conversations.get(call.predecessor) if call.predecessor else None
        conversations[call] = conversation_of(call) or inherited
    return conversations


def _split_session(runs: Sequence[list[Call]]) -> list[list[Call]]:
    """The rollouts of one session: a new one begins where a run repeats the first request of another.

    Runs of one call never tell: an agent that renders its whole prompt anew may come back to where
    it began.
    """
    rollouts: list[list[Call]] = []
    openings: set[Hashable] = set()
    for run in runs:
        opening = _opening(run)
        if opening in openings or not rollouts:
            rollouts.append(list(run))
        else:
            rollouts[-1].extend(run)
        if len(rollouts[-1]) == len(run) and opening is not None:
            openings.add(opening)
    if len(rollouts) > 1:
        for rollout in rollouts:
            rollout[0].flags.add("shared_session")
    return rollouts


def _opening(run: Sequence[Call]) -> Hashable | None:
    """The first request of a run of several calls that begins a conversation, and its agent."""
    first = run[0]
    if len(run) < 2 or first.predecessor or not first.read.messages:
        return None
    messages = first.read.messages
    turns = tuple((m["role"], message_text(m), tuple(tool_names(m))) for m in messages)
    return first.agent, turns


def _join_all(unions: Unions[Call], calls: Sequence[Call]) -> None:
    for call in calls[1:]:
        unions.join(calls[0], call)


def _join_equal(unions: Unions[Call], keys: Mapping[Call, Hashable]) -> None:
    first: dict[Hashable, Call] = {}
    for call, key in keys.items():
        unions.join(first.setdefault(key, call), call)


def _join_thread(unions: Unions[Call], call: Call, conversations: Mapping[Call, str | None]) -> None:
    """A thread joins its calls unless they are in two known conversations."""
    predecessor = call.predecessor
    if predecessor is None:
        return
    mine, theirs = conversations[call], conversations[predecessor]
    if mine is None or theirs is None or mine == theirs:
        unions.join(predecessor, call)


def _scope_key(call: Call) -> Hashable:
    outermost = call.scopes[-1].span
    return outermost.trace_id, outermost.span_id


def _single_conversation_traces(groups: Sequence[list[Call]]) -> list[list[Call]]:
    """The calls of each trace that has at most one group of several calls, and those groups' calls."""
    by_trace: defaultdict[str, list[list[Call]]] = defaultdict(list)
    for group in groups:
        for trace_id in dict.fromkeys(call.spans[0].trace_id for call in group):
            by_trace[trace_id].append(group)
    return [
        [call for group in members for call in group]
        for members in by_trace.values()
        if len(members) > 1 and sum(len(group) > 1 for group in members) < 2
    ]


def _rollout_ids(groups: Sequence[Sequence[Call]]) -> list[str]:
    """Conversation id, else trace id; the first call's span id makes a repeated one unique."""
    names = [conversation_of(group[0]) or group[0].spans[0].trace_id for group in groups]
    repeated = {name for name, count in Counter(names).items() if count > 1}
    return [
        f"{name}/{group[0].spans[0].span_id}" if name in repeated else name
        for name, group in zip(names, groups, strict=True)
    ]
