from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.prefixes import Prefix, PrefixCache
from milegpo_plugin.local.sampler import Batch, Row


def prefix(*tokens: int) -> Prefix:
    """One layer, one head, head size 1: the key of each token is the token."""
    keys = torch.tensor(tokens, dtype=torch.float32)[None, :, None]
    return Prefix(list(tokens), [(keys, -keys)])


@pytest.fixture
def cache() -> PrefixCache:
    found = PrefixCache(max_bytes=1000)
    found.use_version(0)
    return found


def test_the_longest_known_prefix_is_found_in_whole_blocks(cache: PrefixCache) -> None:
    cache.keep(prefix(*range(40)))
    cache.keep(prefix(*range(16), *range(100, 120)))
    found = cache.longest([*range(38), 99])
    assert found is not None
    assert found.tokens == list(range(32))
    assert found.states[0][0].flatten().tolist() == list(range(32))
    other = cache.longest([*range(16), *range(100, 140)])
    assert other is not None
    assert other.tokens == [*range(16), *range(100, 116)]


def test_the_last_token_of_a_prompt_is_never_taken_from_the_cache(cache: PrefixCache) -> None:
    cache.keep(prefix(*range(32)))
    found = cache.longest(range(32))
    assert found is not None
    assert len(found.tokens) == 16


@pytest.mark.parametrize("prompt", [range(1, 40), range(10), []], ids=["other", "short", "empty"])
def test_an_unknown_prompt_has_no_prefix(cache: PrefixCache, prompt: Any) -> None:
    cache.keep(prefix(*range(40)))
    assert cache.longest(list(prompt)) is None


def test_another_version_of_the_policy_forgets_everything(cache: PrefixCache) -> None:
    cache.keep(prefix(*range(32)))
    cache.use_version(1)
    assert cache.longest([*range(32), 1]) is None


def test_the_least_recently_used_prefix_makes_room(cache: PrefixCache) -> None:
    rows = [prefix(*range(start, start + 32)) for start in (0, 100, 200, 300)]  # 256 bytes each
    for row in rows[:3]:
        cache.keep(row)
    assert cache.longest([*rows[0].tokens, 1])
    cache.keep(rows[3])
    assert [cache.longest([*row.tokens, 1]) is not None for row in rows] == [True, False, True, True]


def test_a_reused_prefix_gives_the_same_numbers(policy: Policy, prepared: Callable[..., Any]) -> None:
    def request(text: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": text}], "max_tokens": 6, "seed": 3}

    start = "You are in the kitchen. To the North you see a closed door. "
    texts = [start, start * 2 + "take coin", start + "north", "south", start * 2 + "take coins"]

    def answer(generation: Any, cache: PrefixCache | None) -> Any:
        row = Row(generation, policy, cache.longest(generation.prompt) if cache else None)
        batch = Batch(policy, [row])
        with torch.inference_mode():
            while batch.rows:
                batch.step()
                batch.retire()
        if cache is not None and row.prefix is not None:
            cache.keep(row.prefix)
        return row.completion

    cache = PrefixCache(max_bytes=2**24)
    cache.use_version(policy.version)
    for text in texts:
        fresh, cached = (prepared(policy, [request(text)])[0].generation for _ in range(2))
        expected, got = answer(fresh, None), answer(cached, cache)
        assert got.tokens == expected.tokens
        assert got.logprobs == pytest.approx(expected.logprobs, abs=1e-4)
    (again,) = prepared(policy, [request(texts[-1])])
    assert len(cache.longest(again.generation.prompt).tokens) > 16


def test_rows_with_and_without_a_prefix_share_a_batch(policy: Policy, prepared: Callable[..., Any]) -> None:
    texts = ["You are in the kitchen. To the North you see a closed door. " * 3, "take coin"]
    requests = [
        {"messages": [{"role": "user", "content": text}], "max_tokens": 4, "seed": 1} for text in texts
    ]

    def run(prefixes: list[Prefix | None]) -> list[Row]:
        jobs = prepared(policy, requests)
        rows = [Row(job.generation, policy, known) for job, known in zip(jobs, prefixes, strict=True)]
        batch = Batch(policy, rows)
        with torch.inference_mode():
            while batch.rows:
                batch.step()
                batch.retire()
        return rows

    plain = run([None, None])
    assert plain[0].prefix is not None
    mixed = run([plain[0].prefix.head(20), None])
    for one, two in zip(plain, mixed, strict=True):
        assert one.completion.tokens == two.completion.tokens
        assert one.completion.logprobs == pytest.approx(two.completion.logprobs, abs=1e-4)
