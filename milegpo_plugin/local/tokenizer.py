"""A small, lossless tokenizer of whole words, built from sample text.

Byte-level BPE keeps every text exactly. It is trained until each word of the samples is one
token, with and without a space before it, so that a tool argument such as a direction is one
decision of the policy. The frame of a tool call is a handful of added tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PAD: Final = "<|pad|>"
END: Final = "<|end|>"
ROLES: Final = ("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|tools|>")
CALL_FRAME: Final = (
    '<tool_call>{"name": "',
    '", "arguments": {"',
    '"}}</tool_call>',
    "<tool_call>",
    "</tool_call>",
    '": "',
    '", "',
)

_WORDS: Final = r" ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+"


def build_tokenizer(
    sample_texts: Iterable[str], *, max_vocabulary: int, max_positions: int, chat_template: str
) -> PreTrainedTokenizerFast:
    """Build the tokenizer of a tiny model.

    Args:
        sample_texts: text as the policy will see it; unseen words cost several tokens.
        max_vocabulary: most tokens in all; rarer words then fall into pieces.
        max_positions: stated as the tokenizer's ``model_max_length``.
        chat_template: Jinja template of the conversation.
    """
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=max_vocabulary - len(CALL_FRAME),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[PAD, END, *ROLES],
        show_progress=False,
    )
    core.train_from_iterator(_with_and_without_space(sample_texts), trainer)
    core.add_tokens([AddedToken(text, normalized=False, special=False) for text in CALL_FRAME])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=END,
        model_max_length=max_positions,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def _with_and_without_space(texts: Iterable[str]) -> Iterator[str]:
    for text in (*texts, "name arguments true false null"):
        yield text
        yield " " + text
        for word in text.split():
            yield word
            yield " " + word
