"""WebShop as a game, over the pages of a running WebShop site at ``WEBSHOP_URL``.

No package carries WebShop: start ``web_agent_site/app.py`` of a princeton-nlp/WebShop checkout and set
``WEBSHOP_URL=http://127.0.0.1:3000``. A task is ``{"goal": int}``. Actions are those of WebShop's text
environment, ``search[words]`` and ``click[label]``.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any, Final

import httpx
from games import Frame, GameError, Tool

STEP_LIMIT: Final = 15
TOOLS: Final = (
    Tool("search", "Search for products.", "search[{query}]"),
    Tool("click", "Click a button, a product or an option.", "click[{label}]"),
)
SEARCH: Final = "search[<your query>]"
UNSEEN: Final = ("style", "script", "head", "title")


class Page(HTMLParser):
    """What a page of WebShop shows and where its labels lead.

    ``texts`` are the visible texts, ``links`` maps a label to ``(method, address)``, ``search`` is the
    address of the search form.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.links: dict[str, tuple[str, str]] = {}
        self.search: str | None = None
        self._open: list[str] = []
        self._form: str | None = None
        self._target: tuple[str, str] | None = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where a form, a product link or an option leads."""
        values = {name: value or "" for name, value in attrs}
        if tag in UNSEEN:
            self._open.append(tag)
        elif tag == "form":
            self._form = values.get("action")
        elif tag == "button" and self._form is not None:
            self._target = ("POST", self._form)
        elif tag == "a" and "product-link" in values.get("class", ""):
            self._target = ("GET", values.get("href", ""))
        elif tag == "input" and values.get("id") == "search_input":
            self.search = self._form
        elif tag == "input" and values.get("type") == "radio":
            self.links[values.get("value", "").lower()] = ("GET", values.get("data-url", ""))

    def handle_endtag(self, tag: str) -> None:
        """Leave a form, a link or a hidden part."""
        if tag in UNSEEN and tag in self._open:
            self._open.remove(tag)
        elif tag == "form":
            self._form = None
        elif tag in ("button", "a"):
            self._target = None

    def handle_data(self, data: str) -> None:
        """Keep a visible text; inside a button or link it is a label."""
        text = data.strip()
        if not text or self._open:
            return
        self.texts.append(text)
        if self._target is not None and text.lower() != "search":
            self.links[text.lower()] = self._target


class ShopGame:
    """One shopping session at a time.

    Raises:
        GameError: ``WEBSHOP_URL`` is not set.
    """

    setting = "the WebShop e-commerce environment"
    tools = TOOLS

    def __init__(self, name: str) -> None:
        url = os.environ.get("WEBSHOP_URL")
        if not url:
            raise GameError(f"{name}: set WEBSHOP_URL to a running WebShop site")
        self.name = name
        self.goal = ""
        self._client = httpx.Client(base_url=url, follow_redirects=True, timeout=60)
        self._page = Page("")
        self._steps = 0

    def start(self, task: Mapping[str, Any]) -> Frame:
        """Open a new session with a numbered goal.

        Raises:
            GameError: the task has no goal number, or the site has no such goal.
        """
        number = task.get("goal")
        if not isinstance(number, int):
            raise GameError(f"{self.name}: the task needs the number of a goal, got {number!r}")
        self._steps = 0
        self._open("GET", f"/{uuid.uuid4().hex}_fixed_{number}")
        instruction = next(
            (i for i, text in enumerate(self._page.texts) if text.startswith("Instruction:")), None
        )
        if instruction is None:
            raise GameError(f"{self.name}: the site shows no instruction for goal {number}")
        shown = self._page.texts[instruction].removeprefix("Instruction:").strip()
        self.goal = shown or self._page.texts[instruction + 1]
        return self._frame()

    def act(self, command: str) -> Frame:
        """Search or click; anything else, or a label that is not there, changes nothing."""
        self._steps += 1
        found = re.fullmatch(r"(search|click)\[(.*)\]", command.strip(), re.DOTALL)
        verb, words = (found[1], found[2].strip().lower()) if found else ("", "")
        if verb == "search" and words and self._page.search is not None:
            self._open("POST", self._page.search, {"search_query": words})
        elif verb == "click" and words in self._page.links:
            self._open(*self._page.links[words])
        return self._frame()

    def _open(self, method: str, address: str, form: dict[str, str] | None = None) -> None:
        response = self._client.request(method, address, data=form)
        if response.is_error:
            raise GameError(f"{self.name}: {response.request.url} answers {response.status_code}")
        self._page = Page(response.text)

    def _frame(self) -> Frame:
        page, score = self._page, self._score()
        search = [SEARCH] if page.search is not None else []
        return Frame(
            observation=" [SEP] ".join(f"'{text}'" for text in self._shown()),
            actions=(*search, *(f"click[{label}]" for label in page.links)),
            score=score or 0.0,
            done=score is not None or self._steps >= STEP_LIMIT,
            won=score is not None and score >= 1.0,
        )

    def _shown(self) -> list[str]:
        """The page without the instruction, which is the goal."""
        if self._score() is not None:
            return ["Thank you for shopping with us!"]
        return [text for text in self._page.texts if self.goal not in text and text != "Instruction:"]

    def _score(self) -> float | None:
        """The score on the last page; None before."""
        texts = self._page.texts
        for heading, value in pairwise(texts):
            if heading.startswith("Your score (min 0.0, max 1.0)"):
                return float(value)
        return None
