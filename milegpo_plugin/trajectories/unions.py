"""Disjoint sets of things that belong together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Unions(Generic[Item]):
    """Disjoint sets with path halving; groups keep the order in which items were given."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._parent = {item: item for item in items}

    def find(self, item: Item) -> Item:
        """The representative of ``item``'s set."""
        parent = self._parent
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    def join(self, left: Item, right: Item) -> None:
        """Make one set of two."""
        self._parent[self.find(right)] = self.find(left)

    def groups(self) -> list[list[Item]]:
        """The sets, in the order of their first items."""
        found: defaultdict[Item, list[Item]] = defaultdict(list)
        for item in self._parent:
            found[self.find(item)].append(item)
        return list(found.values())
