"""What makes the page self-contained: its own style and script, and plotly's code, checked by hash.

The page's Content-Security-Policy lets exactly these scripts run and nothing load from anywhere, so
that text from a trace can neither run nor call home, whatever it contains.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any, Final

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

SCRIPTS: Final = ("dom.js", "graph.js", "group.js", "page.js")


def render(context: dict[str, Any], data: Any) -> str:
    """The whole page; ``data`` is what its script works on."""
    environment = Environment(
        loader=PackageLoader("milegpo_plugin.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=False,
    )
    return environment.get_template("page.html.j2").render(
        **context,
        style=Markup(_template("style.css")),
        script=Markup(_script()),
        script_hashes=Markup(f"'{_hash(_script())}' '{_hash(get_plotlyjs())}'"),
        plotly=_plotly(),
        data=pack(orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY)),
    )


def pack(content: bytes) -> str:
    """Compressed, as base64: small, and free of any character that means something in HTML."""
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


@cache
def _plotly() -> str:
    return pack(get_plotlyjs().encode())


@cache
def _script() -> str:
    return "\n".join(_template(name) for name in SCRIPTS)


def _template(name: str) -> str:
    return files("milegpo_plugin.report").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
