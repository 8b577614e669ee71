"""Constrained decoding: tool schemas and choices as xgrammar grammars, and masks from them.

Text that is fixed, and each text of a choice, is matched in its canonical tokenization only.
The policy then chooses among actions and not among spellings of an action, and fixed text is
a run of tokens with a single allowed continuation. Free values (strings, numbers, nested
objects) are matched byte by byte, in every tokenization.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import xgrammar
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from milegpo_plugin.local.chat import CallFormat
from milegpo_plugin.local.protocol import RequestError
from milegpo_plugin.local.schemas import Fixed, Free, OneOf, Piece, call_alternatives, merge_fixed

_CACHE_SIZE: Final = 4096


class ConstraintCompiler:
    """Compiles constraints for one tokenizer and keeps what it compiled.

    Args:
        vocabulary: number of logits of the model, at least the tokenizer's size.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, vocabulary: int, calls: CallFormat):
        self._tokenizer = tokenizer
        self._calls = calls
        self._texts = token_texts(tokenizer, vocabulary)
        special = {index for index, token in tokenizer.added_tokens_decoder.items() if token.special}
        self._matched = [b"" if index in special else text for index, text in enumerate(self._texts)]
        info = xgrammar.TokenizerInfo(
            self._matched, vocab_size=vocabulary, stop_token_ids=[tokenizer.eos_token_id]
        )
        self._compiler = xgrammar.GrammarCompiler(
            info, max_threads=1, cache_enabled=False, enable_dynamic_compilation=True
        )
        self._compiled = lru_cache(_CACHE_SIZE)(self._compile)

    def tool_call(self, tools: Sequence[dict[str, Any]]) -> TokenMatcher:
        """Exactly one call of one of the tools (OpenAI function tools)."""
        return self._matcher("tools", [tool["function"] for tool in tools])

    def choice(self, texts: Sequence[str]) -> TokenMatcher:
        """Exactly one of the texts."""
        return self._matcher("choice", list(texts))

    def json_schema(self, schema: dict[str, Any] | bool) -> TokenMatcher:
        """A JSON value that matches the schema."""
        return self._matcher("json", schema)

    def regex(self, pattern: str) -> TokenMatcher:
        """Text that matches the pattern."""
        return self._matcher("regex", pattern)

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token stands for."""
        return self._texts[token]

    def _matcher(self, kind: str, what: Any) -> TokenMatcher:
        return TokenMatcher(self._compiled(kind, json.dumps(what)), self._tokenizer)

    def _compile(self, kind: str, what: str) -> xgrammar.CompiledGrammar:
        value = json.loads(what)
        try:
            return self._compiler.compile_grammar(self._grammar(kind, value))
        except RuntimeError as error:
            reason = str(error).split(": ", 1)[-1].strip()
            raise RequestError(f"the {kind} constraint cannot be compiled: {reason}", param=kind) from error

    def _grammar(self, kind: str, value: Any) -> xgrammar.Grammar:
        if kind == "json":
            return xgrammar.Grammar.from_json_schema(json.dumps(value), any_whitespace=False)
        if kind == "regex":
            return xgrammar.Grammar.from_regex(value)
        if kind == "choice":
            return self._union([merge_fixed([OneOf(tuple(dict.fromkeys(value)))])])
        return self._union(list(self._calls_of(value)))

    def _calls_of(self, functions: Sequence[dict[str, Any]]) -> Iterator[list[Piece]]:
        for function in functions:
            yield from call_alternatives(
                function["name"], function.get("parameters"), self._calls.begin, self._calls.end
            )

    def _union(self, alternatives: Sequence[Sequence[Piece]]) -> xgrammar.Grammar:
        rules = [
            " ".join(self._rule(piece) for piece in pieces if not isinstance(piece, Free))
            for pieces in alternatives
        ]
        if not any(isinstance(piece, Free) for pieces in alternatives for piece in pieces):
            return xgrammar.Grammar.from_ebnf(f"root ::= {_either(rules)}")
        grammars = [
            xgrammar.Grammar.concat(*(self._piece(piece) for piece in pieces)) for pieces in alternatives
        ]
        return xgrammar.Grammar.union(*grammars)

    def _piece(self, piece: Piece) -> xgrammar.Grammar:
        if isinstance(piece, Free):
            return self._grammar("json", piece.schema)
        return xgrammar.Grammar.from_ebnf(f"root ::= {self._rule(piece)}")

    def _rule(self, piece: Fixed | OneOf) -> str:
        texts = piece.texts if isinstance(piece, OneOf) else (piece.text,)
        return _either([self._tokens(text) for text in texts])

    def _tokens(self, text: str) -> str:
        """The text's own tokens as a rule; its bytes when the tokenizer would alter it."""
        ids = self._tokenizer(text, add_special_tokens=False).input_ids
        if ids and b"".join(self._matched[token] for token in ids) == text.encode():
            return " ".join(f"Token({token})" for token in ids)
        return json.dumps(text)


def _either(rules: Sequence[str]) -> str:
    return "(" + " | ".join(f"({rule})" for rule in rules) + ")"


def token_texts(tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> list[bytes]:
    """The bytes of every token, [vocabulary]; added tokens are taken literally.

    xgrammar decodes the vocabulary by its kind, but an added token such as ``": "`` holds a
    real space and is not byte-level text.
    """
    raw = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocabulary).decoded_vocab
    texts = [bytes(text) for text in raw]
    for index, token in tokenizer.added_tokens_decoder.items():
        if index < vocabulary:
            texts[index] = str(token).encode()
    return texts


class TokenMatcher:
    """Follows one response through a grammar."""

    def __init__(self, grammar: xgrammar.CompiledGrammar, tokenizer: PreTrainedTokenizerBase):
        self._matcher = xgrammar.GrammarMatcher(grammar)
        self._tokenizer = tokenizer
        self._words = xgrammar.get_bitmask_shape(1, grammar.tokenizer_info.vocab_size)[1]

    @property
    def finished(self) -> bool:
        """Whether the response is complete, end token included."""
        return bool(self._matcher.is_terminated())

    def allowed(self) -> NDArray[np.int32]:
        """Bitmask of the tokens that may come next, [ceil(vocabulary / 32)]."""
        mask = np.full(self._words, -1, dtype=np.int32)
        self._matcher.fill_next_token_bitmask(mask[None])
        return mask

    def accept(self, token: int) -> None:
        """Take a token that :meth:`allowed` allows."""
        if not self._matcher.accept_token(token):
            raise RuntimeError(f"token {token} is outside the grammar")

    def forced_run(self) -> list[int]:
        """Accept and return the tokens that follow without a choice, possibly none."""
        run: list[int] = []
        while not self.finished and (tokens := self._forced()):
            for token in tokens:
                self.accept(token)
            run.extend(tokens)
        return run

    def _forced(self) -> list[int]:
        token = single_token(self.allowed())
        return self._jump_forward() if token is None else [token]

    def _jump_forward(self) -> list[int]:
        """Tokens of the text that the grammar forces in a free value.

        The last one is left to the policy: its own tokenization may reach past it.
        """
        text = self._matcher.find_jump_forward_string()
        return list(self._tokenizer(text, add_special_tokens=False).input_ids[:-1]) if text else []


def single_token(mask: NDArray[np.int32]) -> int | None:
    """The only token of a bitmask, or None when it allows several."""
    words = np.flatnonzero(mask)
    if len(words) != 1:
        return None
    bits = int(mask[words[0]]) & 0xFFFFFFFF
    return int(words[0]) * 32 + bits.bit_length() - 1 if bits & (bits - 1) == 0 else None
