"""Games as a tool server: ``python examples/environments/serve.py --port 8765``.

Agents in any framework, language or venv play over HTTP:

    POST /games             {"environment": "coin", "task": {"seed": 1}}    → a frame with its "game" id
    POST /games/ID/act      {"action": "move north"}                        → the next frame
    POST /games/ID/call     {"name": "move", "arguments": {"direction": "north"}}

A frame holds ``game``, ``setting``, ``goal``, ``observation``, ``actions`` (possible commands), ``tools``
(the same as OpenAI function tools), ``score``, ``done`` and ``won``. A game that is over is forgotten,
and its engine plays the next one. Errors are ``{"error": "..."}`` with status 400, 404 or 501.
"""

from __future__ import annotations

import argparse
import importlib
import threading
import uuid
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, Final

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from games import Frame, Game, GameError, tool_command, tool_schemas
from pydantic import BaseModel, Field

MOST_OPEN: Final = 256
MAKERS: Final = {
    "coin": ("express", "ExpressGame"),
    "mapreader": ("express", "ExpressGame"),
    "cookingworld": ("express", "ExpressGame"),
    "alfworld": ("household", "HouseholdGame"),
    "scienceworld": ("science", "ScienceGame"),
    "webshop": ("shop", "ShopGame"),
}
"""Module and class of each environment; imported when it is first asked for."""


class NoSuchGameError(GameError):
    """The id belongs to no open game."""


class Start(BaseModel):
    """What to play."""

    environment: str
    task: dict[str, Any] = Field(default_factory=dict)


class Act(BaseModel):
    """A command in words."""

    action: str


class Call(BaseModel):
    """A call of one of the tools."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Arcade:
    """Open games by id. An engine plays one game at a time and is used again afterwards.

    The oldest game is closed when ``most_open`` are open: agents may leave without a word.
    """

    def __init__(self, make: Callable[[str], Game], most_open: int = MOST_OPEN) -> None:
        self._make = make
        self._most_open = most_open
        self._open: OrderedDict[str, tuple[str, Game]] = OrderedDict()
        self._idle: defaultdict[str, list[Game]] = defaultdict(list)
        self._lock = threading.Lock()

    def start(self, environment: str, task: dict[str, Any]) -> dict[str, Any]:
        """Open a game and show its first frame."""
        with self._lock:
            while len(self._open) >= self._most_open:
                self._release(next(iter(self._open)))
            game = self._idle[environment].pop() if self._idle[environment] else None
        game = game or self._make(environment)
        frame = game.start(task)
        name = uuid.uuid4().hex
        with self._lock:
            self._open[name] = (environment, game)
        return self._show(name, game, frame)

    def act(self, name: str, command: str) -> dict[str, Any]:
        """Do what the command says."""
        game = self._find(name)
        return self._show(name, game, game.act(command))

    def call(self, name: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Do what the tool call says."""
        return self.act(name, tool_command(self._find(name).tools, tool, arguments))

    def _find(self, name: str) -> Game:
        with self._lock:
            if name not in self._open:
                raise NoSuchGameError(f"no open game {name!r}; it is over, or was never started")
            return self._open[name][1]

    def _release(self, name: str) -> None:
        environment, game = self._open.pop(name)
        self._idle[environment].append(game)

    def _show(self, name: str, game: Game, frame: Frame) -> dict[str, Any]:
        shown = {
            "game": name,
            "setting": game.setting,
            "goal": game.goal,
            "observation": frame.observation,
            "actions": list(frame.actions),
            "tools": tool_schemas(game.tools, frame.actions),
            "score": frame.score,
            "done": frame.done,
            "won": frame.won,
        }
        if frame.done:
            with self._lock:
                self._release(name)
        return shown


def make_game(environment: str) -> Game:
    """An engine for an environment.

    Raises:
        GameError: there is no such environment.
        ModuleNotFoundError: its package is not installed.
    """
    if environment not in MAKERS:
        raise GameError(f"no environment {environment!r}; there are {', '.join(MAKERS)}")
    module, kind = MAKERS[environment]
    game: Game = getattr(importlib.import_module(module), kind)(environment)
    return game


def build_app(arcade: Arcade) -> FastAPI:
    """The routes."""
    app = FastAPI(title="Games")

    @app.exception_handler(GameError)
    async def refuse(_: Request, error: GameError) -> JSONResponse:
        status = 404 if isinstance(error, NoSuchGameError) else 400
        return JSONResponse({"error": str(error)}, status_code=status)

    @app.exception_handler(ModuleNotFoundError)
    async def not_installed(_: Request, error: ModuleNotFoundError) -> JSONResponse:
        message = f"this environment needs the package {error.name}, which is not installed here"
        return JSONResponse({"error": message}, status_code=501)

    @app.post("/games")
    def start(request: Start) -> dict[str, Any]:
        return arcade.start(request.environment, request.task)

    @app.post("/games/{game}/act")
    def act(game: str, request: Act) -> dict[str, Any]:
        return arcade.act(game, request.action)

    @app.post("/games/{game}/call")
    def call(game: str, request: Call) -> dict[str, Any]:
        return arcade.call(game, request.name, request.arguments)

    return app


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Serve text games to agents.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8765)
    options = parser.parse_args()
    app = build_app(Arcade(make_game))
    uvicorn.run(app, host=options.host, port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
