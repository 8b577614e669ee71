"""Similar texts as one state, whatever the order of the input."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Mapping
from typing import Final

from rapidfuzz import process
from rapidfuzz.distance import Indel

_ROUNDING: Final = 1e-9
_CUTOFF_SLACK: Final = 0.01
"""rapidfuzz turns the cutoff into a whole distance and can lose a text exactly at it."""


def merge_similar(counts: Mapping[str, int], fixed: Collection[str], threshold: float) -> dict[str, str]:
    """Map each text to the leader it is similar to, or to itself.

    Texts are taken by falling count, then by their own order; one that is not similar enough to
    a leader becomes a leader. Every text is therefore within ``threshold`` of its leader, and
    chains of small changes do not drift. Similarity is 1 - indel distance / total length.

    Args:
        counts: how often each text occurs.
        fixed: texts that lead in any case, such as given states.
        threshold: least similarity, in (0, 1].
    """
    leaders = sorted((len(text), text) for text in fixed)
    merged = {text: text for text in fixed}
    for text in sorted(counts.keys() - merged.keys(), key=lambda text: (-counts[text], text)):
        merged[text] = _nearest(text, leaders, threshold) or text
        if merged[text] == text:
            insort(leaders, (len(text), text))
    return merged


def _nearest(text: str, leaders: list[tuple[int, str]], threshold: float) -> str | None:
    """The most similar leader; only lengths that can reach the threshold are compared.

    2 min(a, b) / (a + b) bounds the similarity of lengths a and b.
    """
    shortest, longest = _length_range(len(text), threshold)
    first = bisect_left(leaders, (shortest, ""))
    last = bisect_right(leaders, longest, key=lambda leader: leader[0])
    candidates = [leader for _, leader in leaders[first:last]]
    best = process.extractOne(
        text, candidates, scorer=Indel.normalized_similarity, score_cutoff=threshold - _CUTOFF_SLACK
    )
    return best[0] if best and best[1] >= threshold - _ROUNDING else None


def _length_range(length: int, threshold: float) -> tuple[int, int]:
    """Widened by one character on either side, so that rounding never excludes a candidate."""
    ratio = threshold / (2 - threshold)
    return int(length * ratio) - 1, int(length / ratio) + 1
