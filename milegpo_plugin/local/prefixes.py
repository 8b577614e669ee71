"""Reuse of computed prefixes: a turn of a conversation repeats the turns before it.

The key-value states of finished rows are kept and found again block by block, as vLLM's
prefix caching does (blocks are chained by hash and compared token by token).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from torch import Tensor

States: TypeAlias = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer, [heads, positions, head size]."""

_BLOCK: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """Tokens and their states, equally long."""

    tokens: list[int]
    states: States

    @property
    def size(self) -> int:
        """Bytes of the states."""
        return sum(keys.nbytes + values.nbytes for keys, values in self.states)

    def head(self, length: int) -> Prefix:
        """Its first ``length`` tokens."""
        states = [(keys[:, :length], values[:, :length]) for keys, values in self.states]
        return Prefix(self.tokens[:length], states)


class PrefixCache:
    """Finished rows of one version of the policy, the least recently used dropped first.

    Args:
        max_bytes: most memory of the states; 0 keeps nothing.
    """

    def __init__(self, max_bytes: int):
        self._max_bytes = max_bytes
        self._bytes = 0
        self._version: int | None = None
        self._kept: OrderedDict[int, Prefix] = OrderedDict()
        self._blocks: dict[int, int] = {}
        self._next = 0

    def use_version(self, version: int) -> None:
        """Forget states that another version of the policy computed."""
        if version != self._version:
            self._kept.clear()
            self._blocks.clear()
            self._bytes, self._version = 0, version

    def longest(self, prompt: Sequence[int]) -> Prefix | None:
        """The longest known prefix of a prompt, in whole blocks and short of its last token."""
        key, length = None, 0
        for end, block in _blocks(prompt[:-1]):
            found = self._blocks.get(block)
            if found is None or found not in self._kept:
                break
            key, length = found, end
        if key is None or self._kept[key].tokens[:length] != list(prompt[:length]):
            return None
        self._kept.move_to_end(key)
        return self._kept[key].head(length)

    def keep(self, prefix: Prefix) -> None:
        """Remember a row; one that is known already is not kept twice."""
        blocks = [block for _, block in _blocks(prefix.tokens)]
        if not blocks or prefix.size > self._max_bytes or self._blocks.get(blocks[-1]) in self._kept:
            return
        self._kept[self._next] = prefix
        self._bytes += prefix.size
        for block in blocks:
            self._blocks[block] = self._next
        self._next += 1
        while self._bytes > self._max_bytes:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        key, prefix = self._kept.popitem(last=False)
        self._bytes -= prefix.size
        for _, block in _blocks(prefix.tokens):
            if self._blocks.get(block) == key:
                del self._blocks[block]


def _blocks(tokens: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The end of each whole block and the hash of everything up to it."""
    chain = 0
    for start in range(0, len(tokens) - _BLOCK + 1, _BLOCK):
        chain = hash((chain, *tokens[start : start + _BLOCK]))
        yield start + _BLOCK, chain
