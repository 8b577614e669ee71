"""WebShop's client against a small site with the same routes and page structure as WebShop's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask, redirect, request
from werkzeug.serving import make_server

HEAD = "<html><head><title>WebShop</title><style>.a{}</style></head><body><div id='instruction-text'>"
INSTRUCTION = "i need a red cotton shirt, and price lower than 20.00 dollars"


def build_site() -> Flask:
    site = Flask(__name__)

    @site.route("/<session>", methods=["GET", "POST"])
    def index(session: str) -> Any:
        if int(session.split("_")[-1]) > 9:
            return "no such goal", 500
        if "search_query" in request.form:
            return redirect(f"/search_results/{session}/{request.form['search_query']}/1")
        return (
            f"{HEAD}<h4>Instruction: <br>{INSTRUCTION}</h4></div><form action='/{session}'>"
            "<input id='search_input' name='search_query'><button class='btn'>Search</button></form>"
        )

    @site.route("/search_results/<session>/<words>/<page>", methods=["GET", "POST"])
    def results(session: str, words: str, page: str) -> str:
        return (
            f"{HEAD}<h4>Instruction: {INSTRUCTION}</h4></div><form action='/{session}'>"
            "<button>Back to Search</button></form><!-- <a class='product-link' href='/x'>OLD</a> -->"
            f"<a class='product-link' href='/item_page/{session}/B01/{words}/{page}/none'>B01</a><h4>Shirt</h4>"
        )

    @site.route("/item_page/<session>/<item>/<words>/<page>/<option>", methods=["GET", "POST"])
    def item(session: str, item: str, words: str, page: str, option: str) -> str:
        url = f"/item_page/{session}/{item}/{words}/{page}/Red"
        return (
            f"{HEAD}<h4>Instruction: {INSTRUCTION}</h4></div><h4>color</h4>"
            f"<input type='radio' id='r' name='color' value='Red' data-url='{url}'><label for='r'>Red</label>"
            f"<form action='/done/{session}/{item}/{option}'><button>Buy Now</button></form>"
            "<script>let x = 1;</script>"
        )

    @site.route("/done/<session>/<item>/<option>", methods=["GET", "POST"])
    def done(session: str, item: str, option: str) -> str:
        score = 1.0 if option == "Red" else 0.5
        return f"<html><body><h3 id='reward'>Your score (min 0.0, max 1.0)<pre>{score}</pre></h3>"

    return site


@pytest.fixture
def shop(monkeypatch, player) -> Iterator[Any]:
    server = make_server("127.0.0.1", 0, build_site(), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("WEBSHOP_URL", f"http://127.0.0.1:{server.server_port}")
    yield player
    server.shutdown()
    thread.join()


@pytest.mark.parametrize(("option", "score"), [(["click[red]"], 1.0), ([], 0.5)])
def test_shopping_ends_with_the_site_s_score(environment_module, shop, option, score):
    game = environment_module("shop").ShopGame("webshop")
    frame = game.start({"goal": 3})
    assert game.goal == INSTRUCTION
    assert frame.actions == ("search[<your query>]",)
    for command in ["search[red shirt]", "click[b01]", *option, "click[buy now]"]:
        frame = game.act(command)
        assert INSTRUCTION not in frame.observation
    assert (frame.done, frame.score, frame.won) == (True, score, score == 1.0)


def test_a_page_offers_its_buttons_products_and_options(environment_module, shop):
    game = environment_module("shop").ShopGame("webshop")
    game.start({"goal": 3})
    results = game.act("search[red shirt]")
    assert results.actions == ("click[back to search]", "click[b01]")
    assert "OLD" not in results.observation
    assert game.act("click[b01]").actions == ("click[red]", "click[buy now]")


def test_a_label_that_is_not_there_changes_nothing_and_steps_run_out(environment_module, shop):
    game = environment_module("shop").ShopGame("webshop")
    first = game.start({"goal": 3})
    frames = [game.act("click[buy now]") for _ in range(15)]
    assert {frame.observation for frame in frames} == {first.observation}
    assert [frame.done for frame in frames] == [False] * 14 + [True]


def test_the_search_tool_takes_words_of_the_player_s_own(environment_module, shop):
    games, tools = environment_module("games"), environment_module("shop").TOOLS
    (search,) = games.tool_schemas(tools, ["search[<your query>]"])
    assert search["function"]["parameters"]["properties"] == {"query": {"type": "string"}}
    assert games.tool_command(tools, "search", {"query": "red shirt"}) == "search[red shirt]"


def test_a_goal_that_the_site_does_not_have_is_refused(environment_module, shop):
    game = environment_module("shop").ShopGame("webshop")
    with pytest.raises(environment_module("games").GameError, match="answers 500"):
        game.start({"goal": 12})


def test_without_a_site_the_player_learns_what_to_set(player, monkeypatch):
    monkeypatch.delenv("WEBSHOP_URL", raising=False)
    body = {"environment": "webshop", "task": {"goal": 1}}
    assert "set WEBSHOP_URL" in player.post("/games", body, 400)["error"]
