"""The policy server: OpenAI chat completions on a loopback port, in background threads.

It serves one policy, whatever model name a request gives, so that an agent with a hard-coded
name runs as it is.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final, Self

import orjson
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import ValidationError

from milegpo_plugin.config import describe
from milegpo_plugin.errors import TrainingError
from milegpo_plugin.local.engine import Engine
from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.protocol import ChatRequest, RequestError
from milegpo_plugin.local.requests import Job, prepare
from milegpo_plugin.local.responses import ChunkWriter, completion_body
from milegpo_plugin.local.sampler import Completion
from milegpo_plugin.local.settings import ServerSettings

_START_SECONDS: Final = 20.0


class PolicyServer:
    """Serves a policy over HTTP; also a context manager.

    ``default_temperature`` is that of requests which give none; it may be changed while the
    server runs.
    """

    def __init__(self, policy: Policy, settings: ServerSettings | None = None):
        self.policy = policy
        self.settings = settings or ServerSettings()
        self.default_temperature = 1.0
        policy.records.capacity = self.settings.max_records
        self._engine = Engine(
            policy,
            max_batch=self.settings.max_batch,
            gather_seconds=self.settings.gather_ms / 1000,
            prefix_bytes=int(self.settings.prefix_cache_mb * 2**20),
        )
        self._socket: socket.socket | None = None
        # Without log_config=None uvicorn gives every server of the process handlers that print.
        config = uvicorn.Config(
            self.app(), log_config=None, log_level="warning", access_log=False, timeout_graceful_shutdown=2
        )
        self._http = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="policy-http", daemon=True)

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as base URL.

        Raises:
            TrainingError: the server has not been started.
        """
        if self._socket is None:
            raise TrainingError("the policy server has not been started")
        host, port = self._socket.getsockname()[:2]
        return f"http://{host}:{port}/v1"

    def start(self) -> None:
        """Listen and serve.

        Raises:
            TrainingError: the port is taken, or the server does not come up.
        """
        try:
            self._socket = socket.create_server((self.settings.host, self.settings.port), backlog=2048)
        except OSError as error:
            where = f"{self.settings.host}:{self.settings.port}"
            raise TrainingError(f"the policy server cannot listen on {where}: {error}") from error
        self._engine.start()
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._http.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise TrainingError(f"the policy server did not start within {_START_SECONDS:.0f} s")
            time.sleep(0.01)

    def stop(self) -> None:
        """Answer what runs, then end the threads and free the port."""
        self._http.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._engine.stop()
        if self._socket is not None:
            self._socket.close()

    def check(self) -> None:
        """Raise TrainingError when the server no longer serves."""
        self._engine.check()
        if not self._thread.is_alive():
            raise TrainingError("the policy server's HTTP thread has ended")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def app(self) -> FastAPI:
        """The HTTP application."""
        app = FastAPI(title="milegpo policy server", openapi_url=None)
        app.add_api_route("/health", self._health, methods=["GET"])
        app.add_api_route("/v1/models", self._models, methods=["GET"])
        app.add_api_route("/v1/chat/completions", self._chat, methods=["POST"])
        app.add_exception_handler(RequestError, _refuse)
        app.add_exception_handler(TrainingError, _give_up)
        return app

    def _serve(self) -> None:
        self._http.run(sockets=[self._socket] if self._socket else None)

    async def _health(self) -> Response:
        self.check()
        return _json({"status": "ok", "version": self.policy.version})

    async def _models(self, request: Request) -> Response:
        self._authorize(request)
        model = {"id": self.settings.model_name, "object": "model", "created": 0, "owned_by": "milegpo"}
        return _json({"object": "list", "data": [{**model, "max_model_len": self.policy.max_positions}]})

    async def _chat(self, request: Request) -> Response:
        self._authorize(request)
        chat = _parse(await request.body())
        job = prepare(chat, self.policy, self.settings, self.default_temperature)
        if chat.stream:
            include_usage = chat.stream_options is not None and chat.stream_options.include_usage
            return StreamingResponse(self._stream(job, include_usage), media_type="text/event-stream")
        completion = await asyncio.wrap_future(self._engine.submit(job.generation))
        return _json(completion_body(job, completion, self.policy, self.settings.model_name))

    async def _stream(self, job: Job, include_usage: bool) -> AsyncIterator[bytes]:
        writer = ChunkWriter(job, self.policy, self.settings.model_name)
        yield _event(writer.first())
        try:
            async for completion, tokens in self._watch(job):
                last = completion.finish_reason is not None and tokens == len(completion.tokens)
                chunks: Iterable[dict[str, Any]] = (
                    writer.last(completion, include_usage=include_usage)
                    if last
                    else writer.progress(completion, tokens)
                )
                for chunk in chunks:
                    yield _event(chunk)
        except TrainingError as error:
            yield _event(RequestError(str(error), status=500).body())
        yield b"data: [DONE]\n\n"

    async def _watch(self, job: Job) -> AsyncIterator[tuple[Completion, int]]:
        """The growing completion and how many tokens are ready, up to the end."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Queue[tuple[Completion, int] | None] = asyncio.Queue()

        def report(completion: Completion) -> None:
            if completion.finish_reason is None:
                loop.call_soon_threadsafe(ready.put_nowait, (completion, len(completion.tokens)))

        future = self._engine.submit(job.watched(report).generation)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(ready.put_nowait, None))
        while (item := await ready.get()) is not None:
            yield item
        completion = future.result()
        yield completion, len(completion.tokens)

    def _authorize(self, request: Request) -> None:
        key = self.settings.api_key
        given = request.headers.get("authorization", "")
        if key is not None and not hmac.compare_digest(given.encode(), f"Bearer {key}".encode()):
            raise RequestError("Incorrect API key provided.", code="invalid_api_key", status=401)


def _parse(body: bytes) -> ChatRequest:
    try:
        return ChatRequest.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise RequestError(f"the request body is not valid JSON: {error}") from error
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise RequestError(describe(error), param=where) from error


async def _refuse(_: Request, error: Exception) -> Response:
    refusal = error if isinstance(error, RequestError) else RequestError(str(error), status=500)
    return _json(refusal.body(), refusal.status)


async def _give_up(_: Request, error: Exception) -> Response:
    return _json(RequestError(str(error), status=503).body(), 503)


def _json(body: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(body), status_code=status, media_type="application/json")


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(chunk) + b"\n\n"
