"""Messages that were written as one attribute per field: ``prefix.N.role``, ``prefix.N.content``, …

SDKs cap the number of attributes of a span. Python's evicts the oldest keys, so the first
messages of a long conversation vanish and the lowest surviving one may be incomplete. Messages are
built when they are looked at: of a long history usually only the end is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Final, NamedTuple, overload

from milegpo_plugin.adapters.messages import chat_message, chat_tool_call
from milegpo_plugin.adapters.values import indexed
from milegpo_plugin.types import JSON, Message


class CallKeys(NamedTuple):
    """The keys of a tool call below its index."""

    id: str = "id"
    name: str = "name"
    arguments: str = "arguments"


PLAIN_KEYS: Final = CallKeys()
_USUAL_BITS: Final = 10
"""Role keys of conversations of 2 to this many messages are kept: a look-up is cheaper than making them."""
_KEYS_KEPT: Final = 4096


class FlatMessages(Sequence[Message]):
    """Messages ``first`` to ``last`` of a request, each built by ``read`` at its first use."""

    __slots__ = ("_built", "_read", "first_index")

    def __init__(self, first: int, last: int, read: Callable[[int], Message]) -> None:
        self.first_index = first
        self._read = read
        self._built: list[Message | None] = [None] * (last - first + 1)

    def __len__(self) -> int:
        return len(self._built)

    @overload
    def __getitem__(self, place: int) -> Message: ...
    @overload
    def __getitem__(self, place: slice) -> list[Message]: ...
    def __getitem__(self, place: int | slice) -> Message | list[Message]:
        found = self._built[place]
        if type(found) is dict:
            return found
        if isinstance(place, slice):
            return [self[index] for index in range(*place.indices(len(self._built)))]
        index = place if place >= 0 else place + len(self._built)
        message = self._built[place] = self._read(self.first_index + index)
        return message


def flat_messages(attributes: dict[str, JSON], prefix: str) -> FlatMessages:
    """The complete messages under ``prefix``, up to the newest.

    A message is complete when it has a role: the role is written first, so it is evicted first.
    """
    first, last = message_range(attributes, prefix, ".role")
    return FlatMessages(first, last, partial(_read_message, attributes, prefix))


def message_range(attributes: dict[str, JSON], prefix: str, role: str) -> tuple[int, int]:
    """The first and the last index of the run of roles that ends with the newest; (0, -1) for none."""
    keys, numbers = _role_keys(prefix, role, _USUAL_BITS)
    is_role: Callable[[str], bool] = numbers.__contains__
    newest = next(filter(is_role, reversed(attributes)), None)  # writers count upwards
    last = -1 if newest is None else numbers[newest]
    if newest is None or keys[last + 1] in attributes:
        last = _highest(attributes, prefix, role)
        keys, _ = _role_keys(prefix, role, max(_USUAL_BITS, (last + 1).bit_length()))
    first = last
    while first > 0 and keys[first - 1] in attributes:
        first -= 1
    return max(first, 0), last


@cache
def _role_keys(prefix: str, role: str, bits: int) -> tuple[list[str], dict[str, int]]:
    """The role keys of 2 to the ``bits`` messages and the next, and their numbers, but for the next."""
    keys = [f"{prefix}{number}{role}" for number in range((1 << bits) + 1)]
    return keys, {key: number for number, key in enumerate(keys[:-1])}


def _highest(attributes: Mapping[str, JSON], prefix: str, role: str) -> int:
    """The highest number of a message with a role; -1 for none."""
    start, end = len(prefix), -len(role)
    numbers = (key[start:end] for key in attributes if key.endswith(role) and key.startswith(prefix))
    return max((int(number) for number in numbers if number.isdecimal()), default=-1)


def flat_tool_calls(fields: Mapping[str, JSON], prefix: str, names: CallKeys) -> list[dict[str, JSON]]:
    """Tool calls of ``prefix.M.…``; the indices need not be dense, but nearly always are."""
    dense = _dense_calls(fields, prefix, names)
    return dense or [
        chat_tool_call(*(call.get(key) for key in names)) for call in indexed(fields, prefix).values()
    ]


def _dense_calls(fields: Mapping[str, JSON], prefix: str, names: CallKeys) -> list[dict[str, JSON]]:
    calls: list[dict[str, JSON]] = []
    keys = _call_keys(prefix, 0, names)
    while keys.name in fields:
        calls.append(chat_tool_call(fields.get(keys.id), fields[keys.name], fields.get(keys.arguments)))
        keys = _call_keys(prefix, len(calls), names)
    return calls


@lru_cache(_KEYS_KEPT)
def _call_keys(prefix: str, number: int, names: CallKeys) -> CallKeys:
    """The whole keys of one tool call: a look-up is cheaper than putting keys together."""
    return CallKeys(*(f"{prefix}{number}.{name}" for name in names))


class _MessageKeys(NamedTuple):
    """The whole keys of one message."""

    role: str
    content: str
    tool_call_id: str
    name: str
    tool_calls: str


@lru_cache(_KEYS_KEPT)
def _message_keys(prefix: str, number: int) -> _MessageKeys:
    fields = ("role", "content", "tool_call_id", "name", "tool_calls.")
    return _MessageKeys(*(f"{prefix}{number}.{field}" for field in fields))


def _read_message(attributes: Mapping[str, JSON], prefix: str, number: int) -> Message:
    """One message of ``role``, ``content``, ``tool_call_id`` and ``tool_calls.M.…``."""
    keys, get = _message_keys(prefix, number), attributes.get
    role = attributes[keys.role]
    return chat_message(
        role,
        get(keys.content),
        tool_calls=flat_tool_calls(attributes, keys.tool_calls, PLAIN_KEYS) if role == "assistant" else (),
        tool_call_id=get(keys.tool_call_id),
        name=get(keys.name),
    )
