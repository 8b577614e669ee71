"""The nearest ancestor of a kind, for many spans in linear time."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from milegpo_plugin.adapters import SpanKey, SpanTree
from milegpo_plugin.types import Span


def nearest_ancestors(
    tree: SpanTree, spans: Iterable[Span], wanted: Collection[SpanKey], barriers: Collection[SpanKey] = ()
) -> dict[SpanKey, SpanKey | None]:
    """For each span the nearest ancestor among ``wanted``; None when a barrier or the root is first."""
    known: dict[SpanKey, SpanKey | None] = {}
    below: dict[tuple[str, str | None], SpanKey | None] = {}
    nearest: dict[SpanKey, SpanKey | None] = {}
    for span in spans:
        key, parent = (span.trace_id, span.span_id), (span.trace_id, span.parent_id)
        if key not in known:
            if parent not in below:
                below[parent] = _climb(tree, span, wanted, barriers, known)
            known[key] = below[parent]
        nearest[key] = known[key]
    return nearest


def _climb(
    tree: SpanTree,
    span: Span,
    wanted: Collection[SpanKey],
    barriers: Collection[SpanKey],
    known: dict[SpanKey, SpanKey | None],
) -> SpanKey | None:
    """Climb until the answer is known, and note it for every span on the way."""
    path = [(span.trace_id, span.span_id)]
    found: SpanKey | None = None
    for ancestor in tree.ancestors(span):
        if path[-1] in known:
            found = known[path[-1]]
            break
        key = (ancestor.trace_id, ancestor.span_id)
        if key in wanted or key in barriers:
            found = key if key in wanted else None
            break
        path.append(key)
    else:
        found = known.get(path[-1])
    known.update(dict.fromkeys(path, found))
    return found
