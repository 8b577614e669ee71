"""Weights and tokenizer of a Hugging Face causal language model: by name, folder or GGUF file."""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from milegpo_plugin.errors import ConfigError, MissingDependencyError
from milegpo_plugin.local.chat import ensure_tool_template
from milegpo_plugin.local.settings import ModelSettings


class Source(NamedTuple):
    """A folder or name on the Hugging Face hub, and the GGUF file in it, if it is one."""

    path: str
    gguf_file: str | None = None


def find_source(settings: ModelSettings) -> Source:
    """Where ``model.path`` and ``model.gguf_file`` point to.

    Raises:
        ConfigError: the folder holds several GGUF files and the settings name none.
        MissingDependencyError: it is a GGUF file and the package that reads them is not installed.
    """
    assert settings.path is not None
    source = Source(settings.path, settings.gguf_file or _only_gguf_file(Path(settings.path)))
    if source.gguf_file is not None and importlib.util.find_spec("gguf") is None:
        raise MissingDependencyError(
            f"model.path: {source.gguf_file} needs the package gguf: pip install 'milegpo-plugin[gguf]'"
        )
    path = Path(source.path)
    return Source(str(path.parent), path.name) if path.is_file() else source


def load_module(source: Source, dtype: torch.dtype) -> Any:
    """The model in ``dtype``; the blocks of a GGUF file are unpacked, so that they can be trained.

    Raises:
        ConfigError: there is no causal language model that transformers can load.
    """
    packed = {} if source.gguf_file is None else _unpacking(source.gguf_file)
    try:
        with no_progress_bar():
            return AutoModelForCausalLM.from_pretrained(source.path, dtype=dtype, **packed)
    except (OSError, ValueError, struct.error) as error:
        where = "/".join(filter(None, source))
        raise ConfigError(
            f"model.path: cannot load a causal language model from {where!r}: {error}"
        ) from error


def load_tokenizer(source: Source) -> PreTrainedTokenizerBase:
    """The tokenizer, with a chat template that can show tools.

    Raises:
        ConfigError: there is no tokenizer, or it cannot show tools.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(source.path, gguf_file=source.gguf_file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"model.path: cannot load a tokenizer from {source.path!r}: {error}") from error
    ensure_tool_template(tokenizer)
    return tokenizer


@contextmanager
def no_progress_bar() -> Iterator[None]:
    """Keep transformers from drawing a bar over the progress of a run."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


def _only_gguf_file(path: Path) -> str | None:
    """The file itself, or the one GGUF file of a folder that holds no other weights."""
    if path.is_file():
        return path.name
    if not path.is_dir() or (path / "config.json").exists():
        return None
    names = sorted(file.name for file in path.glob("*.gguf"))
    if len(names) > 1:
        raise ConfigError(f"model.path: {path} holds {', '.join(names)}; name one as model.gguf_file")
    return names[0] if names else None


def _unpacking(gguf_file: str) -> dict[str, Any]:
    return {"gguf_file": gguf_file, "quantization_config": GgufConfig(dequantize=True)}
