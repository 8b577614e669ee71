"""Decode a batch of requests together: one key-value cache, ragged chunks, forced runs.

A row feeds its prompt, or what it drew plus the forced tokens after it, as one chunk. Chunks
are padded on the left; the attention mask hides the padding for good, and positions count
attended tokens only, so a row's numbers do not depend on its neighbours. A tool call of one
decision then costs one forward pass.

Axis suffixes: ``_N`` rows, ``_V`` vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import DynamicCache

from milegpo_plugin.local.constraints import TokenMatcher
from milegpo_plugin.local.distribution import draw, log_distribution, nucleus, pack_mask, unpack_masks
from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.prefixes import Prefix
from milegpo_plugin.local.records import Mask, SamplingRecord

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """A request to the sampler.

    Args:
        prompt: token ids.
        max_tokens: most tokens of the response.
        uniforms: source of uniform numbers; None takes the most likely token.
        temperature: of the distribution; 1 for greedy requests.
        matcher: grammar of the response, at its start.
        stopped: whether the response so far holds a stop string.
        top_logprobs: how many alternatives to report per token.
        on_progress: called after each pass, in the sampler's thread.
    """

    prompt: list[int]
    max_tokens: int
    uniforms: np.random.Generator | None
    temperature: float = 1.0
    top_p: float = 1.0
    matcher: TokenMatcher | None = None
    stopped: Callable[[list[int]], bool] | None = None
    top_logprobs: int = 0
    on_progress: Callable[[Completion], None] | None = None


@dataclass(slots=True, eq=False)
class Completion:
    """A response as it grows; complete when ``finish_reason`` is set."""

    version: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    masks: list[Mask | None] = field(default_factory=list)
    alternatives: list[list[tuple[int, float]]] = field(default_factory=list)
    finish_reason: FinishReason | None = None

    def record(self, temperature: float) -> SamplingRecord:
        """What the learner needs to score this response."""
        logprobs = np.array(self.logprobs, dtype=np.float32)
        return SamplingRecord(tuple(self.masks), logprobs, temperature, self.version)


class Row:
    """One running request: what it has, and the chunk of tokens that the cache has not seen yet.

    ``prefix`` are the first tokens of the prompt, when their states are known.
    """

    def __init__(self, generation: Generation, policy: Policy, prefix: Prefix | None = None):
        self.generation = generation
        self.completion = Completion(policy.version)
        self.prefix = prefix
        self._policy = policy
        self.chunk = generation.prompt[len(prefix.tokens) if prefix else 0 :]
        self._extend_forced()

    @property
    def done(self) -> bool:
        """Whether the response is complete."""
        return self.completion.finish_reason is not None

    def allowed(self) -> Mask | None:
        """Bitmask of the next token; None allows every token."""
        matcher = self.generation.matcher
        return None if matcher is None else matcher.allowed()

    def take(
        self, token: int, logprob: float, mask: Mask | None, alternatives: list[tuple[int, float]]
    ) -> None:
        """Append a drawn token, then every token that is forced after it."""
        if self.generation.matcher is not None:
            self.generation.matcher.accept(token)
        self.chunk = []
        self._append(token, logprob, mask, alternatives)
        self._extend_forced()
        if self.generation.on_progress is not None:
            self.generation.on_progress(self.completion)

    def _extend_forced(self) -> None:
        if self.generation.matcher is None or self.done:
            return
        for token in self.generation.matcher.forced_run():
            if not self.done:
                self._append(token, 0.0, self._only(token), [(token, 0.0)])

    def _append(
        self, token: int, logprob: float, mask: Mask | None, alternatives: list[tuple[int, float]]
    ) -> None:
        completion = self.completion
        completion.tokens.append(token)
        completion.logprobs.append(logprob)
        completion.masks.append(mask)
        completion.alternatives.append(alternatives[: self.generation.top_logprobs])
        completion.finish_reason = self._finish_reason(token)
        self.chunk.append(token)

    def _finish_reason(self, token: int) -> FinishReason | None:
        matcher, tokens = self.generation.matcher, self.completion.tokens
        ended = (
            token in self._policy.end_tokens
            if matcher is None
            else token == self._policy.tokenizer.eos_token_id
        )
        if ended or (self.generation.stopped is not None and self.generation.stopped(tokens)):
            return "stop"
        return "length" if len(tokens) >= self.generation.max_tokens else None

    def _only(self, token: int) -> Mask:
        allowed_V = np.zeros(self._policy.vocabulary, dtype=np.bool_)
        allowed_V[token] = True
        return pack_mask(allowed_V)


class Batch:
    """Rows that share a cache.

    ``attended`` is 1 for tokens and 0 for padding, [rows, cached positions].
    """

    def __init__(self, policy: Policy, rows: Sequence[Row]):
        self._policy = policy
        self.rows = list(rows)
        prefixes = [row.prefix for row in rows]
        self._cache = _cache_of(prefixes)
        lengths = [len(prefix.tokens) if prefix else 0 for prefix in prefixes]
        self._attended = _left_ones(lengths, max(lengths, default=0)).to(policy.device)

    def step(self) -> None:
        """Feed each row's chunk and draw its next token."""
        ids, mask = self._pad_chunks()
        self._attended = torch.cat([self._attended, mask], dim=1)
        logits = self._policy.logits(ids, self._attended, keep=1, cache=self._cache)
        draw_tokens(self.rows, logits[:, -1])

    def retire(self) -> list[Row]:
        """Remove and return the rows that are done; their prefixes are what the cache held."""
        done = [row for row in self.rows if row.done]
        for row in done:
            row.prefix = self._prefix(row)
        if done:
            self._keep([index for index, row in enumerate(self.rows) if not row.done])
        return done

    def merge(self, other: Batch) -> None:
        """Take over another batch's rows; the shorter cache is padded on the left."""
        if not self.rows:
            self.rows, self._cache, self._attended = other.rows, other._cache, other._attended
            return
        length = max(self._attended.shape[1], other._attended.shape[1])
        self.rows += other.rows
        for mine, theirs in zip(self._cache.layers, other._cache.layers, strict=True):
            mine.keys = torch.cat([_pad_cache(mine.keys, length), _pad_cache(theirs.keys, length)])
            mine.values = torch.cat([_pad_cache(mine.values, length), _pad_cache(theirs.values, length)])
        masks = [pad(mask, (length - mask.shape[1], 0)) for mask in (self._attended, other._attended)]
        self._attended = torch.cat(masks)

    def _prefix(self, row: Row) -> Prefix:
        index = self.rows.index(row)
        where = self._attended[index].bool()
        tokens = (row.generation.prompt + row.completion.tokens)[: int(where.sum())]
        layers = self._cache.layers
        return Prefix(
            tokens, [(layer.keys[index][:, where], layer.values[index][:, where]) for layer in layers]
        )

    def _keep(self, indices: list[int]) -> None:
        self.rows = [self.rows[index] for index in indices]
        chosen = torch.tensor(indices, dtype=torch.long, device=self._policy.device)
        self._cache.batch_select_indices(chosen)
        self._attended = self._attended[chosen]

    def _pad_chunks(self) -> tuple[Tensor, Tensor]:
        width = max(len(row.chunk) for row in self.rows)
        filler = self._policy.tokenizer.eos_token_id
        ids = torch.tensor([[filler] * (width - len(row.chunk)) + row.chunk for row in self.rows])
        mask = _left_ones([len(row.chunk) for row in self.rows], width)
        return ids.to(self._policy.device), mask.to(self._policy.device)


def _left_ones(lengths: Sequence[int], width: int) -> Tensor:
    """1 on the last ``length`` of ``width`` positions, [rows, width]."""
    starts = width - torch.tensor(lengths, dtype=torch.long)
    return (torch.arange(width)[None] >= starts[:, None]).long()


def _cache_of(prefixes: Sequence[Prefix | None]) -> DynamicCache:
    """A cache that holds the known prefixes, padded on the left."""
    cache = DynamicCache()
    known = [prefix for prefix in prefixes if prefix is not None]
    length = max((len(prefix.tokens) for prefix in known), default=0)
    for layer in range(len(known[0].states) if known else 0):
        empty = tuple(part[:, :0] for part in known[0].states[layer])
        states = [prefix.states[layer] if prefix else empty for prefix in prefixes]
        keys = torch.stack([_pad_cache(key, length) for key, _ in states])
        values = torch.stack([_pad_cache(value, length) for _, value in states])
        cache.update(keys, values, layer)
    return cache


def _pad_cache(states: Tensor, length: int) -> Tensor:
    return pad(states, (0, 0, length - states.shape[-2], 0))


def draw_tokens(rows: Sequence[Row], logits_NV: Tensor) -> None:
    """Draw the next token of every row from its own distribution."""
    device, vocabulary = logits_NV.device, logits_NV.shape[-1]
    masks = [row.allowed() for row in rows]
    allowed_NV = torch.from_numpy(unpack_masks(masks, vocabulary)).to(device)
    temperature_N = torch.tensor([row.generation.temperature for row in rows], device=device)
    log_NV = log_distribution(logits_NV, allowed_NV, temperature_N)
    if any(row.generation.top_p < 1 for row in rows):
        top_p_N = torch.tensor([row.generation.top_p for row in rows], device=device)
        allowed_NV &= nucleus(log_NV, top_p_N)
        log_NV = log_distribution(logits_NV, allowed_NV, temperature_N)
        masks = _narrowed(rows, masks, allowed_NV)
    token_N = _choose(rows, log_NV)
    logprobs = log_NV.gather(-1, token_N[:, None]).squeeze(-1).tolist()
    alternatives = _alternatives(log_NV, max(row.generation.top_logprobs for row in rows))
    for row, *drawn in zip(rows, token_N.tolist(), logprobs, masks, alternatives, strict=True):
        row.take(*drawn)


def _narrowed(rows: Sequence[Row], masks: Sequence[Mask | None], allowed_NV: Tensor) -> list[Mask | None]:
    kept_NV = allowed_NV.cpu().numpy()
    return [
        pack_mask(kept_V) if row.generation.top_p < 1 else mask
        for row, mask, kept_V in zip(rows, masks, kept_NV, strict=True)
    ]


def _choose(rows: Sequence[Row], log_NV: Tensor) -> Tensor:
    sources = [row.generation.uniforms for row in rows]
    if all(source is None for source in sources):
        return log_NV.argmax(-1)
    numbers = [0.0 if source is None else float(source.random()) for source in sources]
    drawn_N = draw(log_NV, torch.tensor(numbers, dtype=torch.float64, device=log_NV.device))
    greedy_N = torch.tensor([source is None for source in sources], device=log_NV.device)
    return torch.where(greedy_N, log_NV.argmax(-1), drawn_N)


def _alternatives(log_NV: Tensor, count: int) -> list[list[tuple[int, float]]]:
    if count == 0:
        return [[] for _ in log_NV]
    values, tokens = log_NV.topk(min(count, log_NV.shape[-1]))
    return [
        [(token, value) for token, value in zip(*pair, strict=True) if value > float("-inf")]
        for pair in zip(tokens.tolist(), values.tolist(), strict=True)
    ]
