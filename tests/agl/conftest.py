from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from fastapi import FastAPI


def reply(body: dict, number: int) -> dict:
    """Call the first tool with its first allowed value, as vLLM with ``return_token_ids`` would."""
    tool = body["tools"][0]["function"]
    arguments = {name: rule["enum"][0] for name, rule in tool["parameters"]["properties"].items()}
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": tool["name"], "arguments": json.dumps(arguments)},
    }
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "prompt_token_ids": [1, 2, number],
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "token_ids": [number, 7],
                "message": {"role": "assistant", "content": None, "tool_calls": [call]},
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }


@pytest.fixture(scope="session")
def scripted_model() -> Iterator[str]:
    """Base URL of an OpenAI-compatible server that answers every call the same way."""
    app = FastAPI()
    counter = iter(range(1, 10**6))

    @app.post("/v1/chat/completions")
    def complete(body: dict) -> dict:
        return reply(body, next(counter))

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/v1"
    server.should_exit = True
    thread.join(timeout=10)
