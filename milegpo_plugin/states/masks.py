"""Volatile text: what differs between two visits of one state and means nothing.

Ids that model servers mint are always replaced. The other kinds are switched on by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from milegpo_plugin.config import Mask

ID_PLACEHOLDER: Final = "<id>"

_ID_PREFIXES: Final = ("call_", "toolu_", "fc_", "resp_", "msg_", "chatcmpl-", "run-")
_MINTED_ID: Final = re.compile(
    r"\b(?:(?:call|toolu|fc|resp|msg)_(?=\w*\d)[A-Za-z0-9]{16,}"
    r"|(?:chatcmpl|run)-(?=[\w-]*\d)[A-Za-z0-9-]{16,})"
)

_CLOCK: Final = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
_ZONE: Final = r"(?:\s?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})\b)?"
_TIMESTAMP: Final = "|".join(
    (
        rf"\b\d{{4}}[-/]\d{{2}}[-/]\d{{2}}(?:[T ]{_CLOCK}{_ZONE})?",
        rf"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?\d{{1,2}} [A-Z][a-z]{{2,8}} \d{{4}}(?: {_CLOCK}{_ZONE})?",
        rf"\b{_CLOCK}(?:\s?[AaPp][Mm]\b)?",
        r"\b1[4-9]\d{8}(?:\d{3}|\.\d+)?\b",
    )
)

_PATH: Final = (
    r"(?<![\w/:<.~])(?:(?:~|\.{1,2})(?:/[\w.@+-]+)+/?|(?:/[\w.@+-]+){2,}/?|[A-Za-z]:\\[^\s\"'<>|]+)"
)
_HEX: Final = r"\b(?:0[xX][0-9a-fA-F]+|(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{8,})\b"
_DIGIT: Final = re.compile(r"\d")


class _Mask(NamedTuple):
    """``hint`` is a cheap test that a text without this kind of content fails."""

    kind: Mask
    placeholder: str
    hint: re.Pattern[str]
    pattern: re.Pattern[str]


_MASKS: Final = (
    _Mask("urls", "<url>", re.compile("://"), re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s<>\"'`)\]}]+")),
    _Mask("uuids", "<uuid>", _DIGIT, re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")),
    _Mask("timestamps", "<time>", _DIGIT, re.compile(_TIMESTAMP)),
    _Mask("paths", "<path>", re.compile(r"[/\\]"), re.compile(_PATH)),
    _Mask("hex", "<hex>", _DIGIT, re.compile(_HEX)),
    _Mask(
        "numbers",
        "<number>",
        _DIGIT,
        re.compile(r"(?<![A-Za-z_\d])[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?"),
    ),
)
"""In the order of application: the longer shapes first, whatever order a user names them in."""


def mask_minted_ids(text: str) -> str:
    """Replace call and response ids as OpenAI, Anthropic, vLLM and LangChain mint them."""
    if ("_" in text or "-" in text) and any(prefix in text for prefix in _ID_PREFIXES):
        return _MINTED_ID.sub(ID_PLACEHOLDER, text)
    return text


def mask_volatile(text: str, kinds: Iterable[Mask]) -> str:
    """Replace each kind of volatile text by its placeholder; ``json_keys`` is :func:`sort_json_keys`."""
    wanted = frozenset(kinds)
    if not wanted:
        return text
    for mask in _MASKS:
        if mask.kind in wanted and mask.hint.search(text):
            text = mask.pattern.sub(mask.placeholder, text)
    return text


def sort_json_keys(text: str) -> str:
    """A JSON object or array with sorted keys and no optional white space; any other text as it is."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
