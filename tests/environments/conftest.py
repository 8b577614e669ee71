from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi.testclient import TestClient

FOLDER = str(Path(__file__).parents[2] / "examples/environments")


@pytest.fixture(scope="session")
def environment_module() -> Iterator[Callable[[str], ModuleType]]:
    """Import a module of examples/environments, as its neighbours do."""
    sys.path.insert(0, FOLDER)
    yield importlib.import_module
    sys.path.remove(FOLDER)


class Player:
    """A client of the tool server."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def post(self, path: str, body: dict[str, Any], status: int = 200) -> dict[str, Any]:
        response = self.client.post(path, json=body)
        assert response.status_code == status, response.text
        return response.json()

    def start(self, environment: str, **task: Any) -> dict[str, Any]:
        return self.post("/games", {"environment": environment, "task": task})

    def act(self, frame: dict[str, Any], action: str) -> dict[str, Any]:
        return self.post(f"/games/{frame['game']}/act", {"action": action})

    def call(self, frame: dict[str, Any], name: str, **arguments: str) -> dict[str, Any]:
        return self.post(f"/games/{frame['game']}/call", {"name": name, "arguments": arguments})


@pytest.fixture(scope="session")
def player(environment_module: Callable[[str], ModuleType]) -> Player:
    serve = environment_module("serve")
    return Player(TestClient(serve.build_app(serve.Arcade(serve.make_game))))
