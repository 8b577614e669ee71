"""The official OpenAI client against a live server."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI

from milegpo_plugin.errors import TrainingError
from milegpo_plugin.local.learner import Learner
from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.server import PolicyServer
from milegpo_plugin.local.settings import ServerSettings
from milegpo_plugin.rows import RowBatch

USER = [{"role": "user", "content": "You are in the kitchen."}]
COMMANDS = ("move north", "move east", "take coin")


def tool_with(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


@pytest.fixture
def ask(client: OpenAI) -> Callable[..., Any]:
    def create(messages: Any = None, **fields: Any) -> Any:
        return client.chat.completions.create(model="policy", messages=messages or USER, **fields)

    return create


@pytest.fixture
def serve(make_policy: Callable[..., Policy]) -> Iterator[Callable[..., PolicyServer]]:
    """Servers with a policy of their own; stopped at the end."""
    running: list[PolicyServer] = []

    def start(policy: Policy | None = None, **settings: Any) -> PolicyServer:
        running.append(PolicyServer(policy or make_policy(), ServerSettings(**settings)))
        running[-1].start()
        return running[-1]

    yield start
    for server in running:
        server.stop()


def test_a_required_tool_call_comes_in_openai_form(ask: Callable[..., Any], act: Callable[..., Any]) -> None:
    done = ask(tools=act(*COMMANDS), tool_choice="required")
    (call,) = done.choices[0].message.tool_calls
    assert call.function.name == "act"
    assert json.loads(call.function.arguments)["command"] in COMMANDS
    assert done.choices[0].finish_reason == "tool_calls"
    assert done.choices[0].message.content is None


def test_a_named_tool_is_the_one_called(ask: Callable[..., Any], make_tool: Callable[..., Any]) -> None:
    tools = [make_tool(name, item={"enum": ["coin", "coins"]}) for name in ("take", "say")]
    choice = {"type": "function", "function": {"name": "say"}}
    names = {
        ask(tools=tools, tool_choice=choice).choices[0].message.tool_calls[0].function.name for _ in range(5)
    }
    assert names == {"say"}


def test_no_tool_is_called_when_none_may_be(ask: Callable[..., Any], act: Callable[..., Any]) -> None:
    done = ask(tools=act(*COMMANDS), tool_choice="none", max_tokens=5)
    assert done.choices[0].message.tool_calls is None
    assert done.choices[0].message.content


def test_auto_can_be_set_to_mean_required(
    serve: Callable[..., PolicyServer], act: Callable[..., Any]
) -> None:
    client = OpenAI(base_url=serve(auto_tool_choice="required").base_url, api_key="any")
    done = client.chat.completions.create(model="gpt-4o-mini", messages=USER, tools=act(*COMMANDS))
    assert done.choices[0].message.tool_calls


def test_a_choice_is_one_of_its_texts(ask: Callable[..., Any]) -> None:
    done = ask(extra_body={"structured_outputs": {"choice": ["take coin", "north"]}})
    assert done.choices[0].message.content in ("take coin", "north")
    assert done.choices[0].finish_reason == "stop"


def test_json_schema_holds_in_both_spellings(ask: Callable[..., Any]) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    for fields in ({"response_format": form}, {"extra_body": {"structured_outputs": {"json": schema}}}):
        assert json.loads(ask(**fields).choices[0].message.content)["a"] in (1, 2)


def test_token_ids_log_probabilities_and_usage_agree(
    ask: Callable[..., Any], act: Callable[..., Any], policy: Policy
) -> None:
    done = ask(tools=act(*COMMANDS), tool_choice="required", logprobs=True, top_logprobs=2)
    choice = done.choices[0]
    assert done.usage.prompt_tokens == len(done.prompt_token_ids)
    assert done.usage.completion_tokens == len(choice.token_ids) == len(choice.logprobs.content)
    record = policy.records.find(done.prompt_token_ids, choice.token_ids)
    assert record is not None
    assert [item.logprob for item in choice.logprobs.content] == pytest.approx(record.logprobs_T.tolist())
    assert b"".join(bytes(item.bytes) for item in choice.logprobs.content).startswith(b"<tool_call>")
    decision = next(item for item in choice.logprobs.content if item.logprob < 0)
    assert len(decision.top_logprobs) == 2


def test_token_ids_are_given_on_request_only_when_not_training(serve: Callable[..., PolicyServer]) -> None:
    client = OpenAI(base_url=serve(training=False).base_url, api_key="any")
    plain = client.chat.completions.create(model="p", messages=USER, max_tokens=3)
    assert not hasattr(plain, "prompt_token_ids")
    assert plain.choices[0].logprobs is None
    asked = client.chat.completions.create(
        model="p", messages=USER, max_tokens=3, extra_body={"return_token_ids": True}
    )
    assert len(asked.choices[0].token_ids) == 3


def test_a_stream_is_the_same_response_in_pieces(ask: Callable[..., Any]) -> None:
    fields = {"max_tokens": 20, "seed": 7}
    whole = ask(**fields)
    chunks = list(ask(stream=True, stream_options={"include_usage": True}, **fields))
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert "".join(choice.delta.content or "" for choice in choices) == whole.choices[0].message.content
    tokens = [token for choice in choices for token in getattr(choice, "token_ids", None) or []]
    assert tokens == whole.choices[0].token_ids
    assert chunks[0].prompt_token_ids == whole.prompt_token_ids
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["length"]
    assert chunks[-1].usage == whole.usage


def test_a_streamed_tool_call_arrives_whole(ask: Callable[..., Any], act: Callable[..., Any]) -> None:
    chunks = list(ask(tools=act(*COMMANDS), tool_choice="required", stream=True))
    (call,) = [call for chunk in chunks if chunk.choices for call in chunk.choices[0].delta.tool_calls or []]
    assert json.loads(call.function.arguments)["command"] in COMMANDS
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert reasons[-1] == "tool_calls"


def test_a_stop_string_ends_the_text_before_it(ask: Callable[..., Any]) -> None:
    free = ask(max_tokens=20, seed=11).choices[0].message.content
    stop = free[5:8]
    stopped = ask(max_tokens=20, seed=11, stop=[stop]).choices[0]
    assert stopped.message.content == free[: free.index(stop)]
    assert stopped.finish_reason == "stop"
    chunks = ask(max_tokens=20, seed=11, stop=stop, stream=True)
    assert (
        "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        == stopped.message.content
    )


def test_requests_in_parallel_all_get_their_own_answer(
    ask: Callable[..., Any], act: Callable[..., Any]
) -> None:
    def one(index: int) -> tuple[str, str]:
        command = f"take coin {index}"
        done = ask(tools=act(command, command + " now"), tool_choice="required")
        return command, json.loads(done.choices[0].message.tool_calls[0].function.arguments)["command"]

    with ThreadPoolExecutor(8) as pool:
        for command, got in pool.map(one, range(24)):
            assert got in (command, command + " now")


def test_requests_at_one_time_share_forward_passes(
    serve: Callable[..., PolicyServer], make_policy: Callable[..., Policy], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, widths = make_policy(), []
    original = policy.logits

    def counted(ids: Any, attended: Any, **options: Any) -> Any:
        widths.append(ids.shape[0])
        return original(ids, attended, **options)

    monkeypatch.setattr(policy, "logits", counted)
    server = serve(policy, max_batch=3, gather_ms=5000)
    client = OpenAI(base_url=server.base_url, api_key="any", max_retries=0)

    def one(seed: int) -> Any:
        return client.chat.completions.create(model="policy", messages=USER, max_tokens=6, seed=seed)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(one, range(3)))
    assert widths[0] == 3
    assert len(widths) <= 6


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messages": [{"role": "user", "content": "kitchen " * 400}]}, "maximum context length is 200"),
        ({"tool_choice": "required"}, "tool_choice needs tools"),
        ({"temperature": -1}, "temperature: input should be greater than or equal to 0, got -1"),
        ({"n": 2}, "n: input should be less than or equal to 1, got 2"),
        ({"response_format": {"type": "xml"}}, "response_format is not supported"),
        ({"extra_body": {"structured_outputs": {"regex": "("}}}, "the regex constraint cannot be compiled"),
        ({"tools": tool_with({"type": "object", "properties": [1]})}, "properties must be an object"),
        ({"tools": tool_with({"properties": {"a": 3}})}, "every property must have a schema"),
        (
            {"tools": tool_with({"type": "nonsense"}), "tool_choice": "required"},
            'Unsupported type "nonsense"',
        ),
        ({"extra_body": {"structured_outputs": {"choice": ["a"], "regex": "b"}}}, "give one of choice"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "content must be text"),
    ],
    ids=[
        "too long",
        "no tools",
        "temperature",
        "n",
        "format",
        "regex",
        "properties",
        "property",
        "type",
        "two constraints",
        "image",
    ],
)
def test_a_bad_request_is_told_what_is_wrong(
    ask: Callable[..., Any], fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask(**fields)
    assert message in caught.value.body["message"]
    assert caught.value.body["type"] == "invalid_request_error"


def test_an_over_long_prompt_has_the_code_that_clients_know(ask: Callable[..., Any]) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask([{"role": "user", "content": "kitchen " * 400}])
    assert caught.value.code == "context_length_exceeded"


def test_an_unknown_tool_name_is_refused(ask: Callable[..., Any], act: Callable[..., Any]) -> None:
    with pytest.raises(openai.BadRequestError, match="must name one of the tools"):
        ask(tools=act("x"), tool_choice={"type": "function", "function": {"name": "other"}})


def test_a_body_that_is_not_json_is_refused(server: PolicyServer) -> None:
    headers = {"Authorization": "Bearer secret"}
    answer = httpx.post(f"{server.base_url}/chat/completions", content=b"{", headers=headers)
    assert answer.status_code == 400
    assert "not valid JSON" in answer.json()["error"]["message"]


def test_a_wrong_key_is_refused(server: PolicyServer) -> None:
    stranger = OpenAI(base_url=server.base_url, api_key="wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError, match="Incorrect API key"):
        stranger.models.list()


def test_models_and_health(client: OpenAI, server: PolicyServer) -> None:
    assert [model.id for model in client.models.list()] == ["policy"]
    assert httpx.get(server.base_url.removesuffix("/v1") + "/health").json()["status"] == "ok"


def test_the_default_temperature_is_for_requests_that_give_none(serve: Callable[..., PolicyServer]) -> None:
    server = serve()
    client = OpenAI(base_url=server.base_url, api_key="any")

    def texts(**fields: Any) -> set[str]:
        calls = [
            client.chat.completions.create(model="p", messages=USER, max_tokens=8, **fields) for _ in range(4)
        ]
        return {call.choices[0].message.content or "" for call in calls}

    assert len(texts()) > 1
    server.default_temperature = 0.0
    assert len(texts()) == 1
    assert len(texts(temperature=1.0)) > 1


def test_requests_during_updates_never_mix_two_policies(
    serve: Callable[..., PolicyServer],
    make_policy: Callable[..., Policy],
    act: Callable[..., Any],
    to_rows: Any,
) -> None:
    policy = make_policy()
    request = {"messages": USER, "tools": act(*COMMANDS), "tool_choice": "required"}
    rows: RowBatch = to_rows(policy, [request] * 8, lambda text: 1.0 if "coin" in text else -1.0)
    learner = Learner(policy)
    client = OpenAI(base_url=serve(policy).base_url, api_key="any")
    seen: list[Any] = []
    busy = threading.Event()

    def keep_asking() -> None:
        while not busy.is_set():
            seen.append(client.chat.completions.create(model="p", messages=USER, max_tokens=12))

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(keep_asking) for _ in range(3)]
        for _ in range(5):
            learner.update(rows)
        busy.set()
        for future in asking:
            future.result()
    assert policy.version == 5
    assert len(seen) >= 3


def test_a_dead_sampler_is_reported_and_its_requests_fail(
    serve: Callable[..., PolicyServer], make_policy: Callable[..., Policy], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = make_policy()
    server = serve(policy)
    server.check()

    def broken(*_: Any, **__: Any) -> Any:
        raise MemoryError("no memory left")

    monkeypatch.setattr(policy, "logits", broken)
    client = OpenAI(base_url=server.base_url, api_key="any", max_retries=0)
    for _ in range(2):
        with pytest.raises(openai.InternalServerError):
            client.chat.completions.create(model="p", messages=USER)
    with pytest.raises(TrainingError, match="sampler stopped: MemoryError"):
        server.check()


def test_a_stopped_server_is_reported_and_frees_its_port(make_policy: Callable[..., Policy]) -> None:
    server = PolicyServer(make_policy())
    with pytest.raises(TrainingError, match="has not been started"):
        _ = server.base_url
    server.start()
    port = int(server.base_url.split(":")[2].split("/")[0])
    server.stop()
    with pytest.raises(TrainingError, match="HTTP thread has ended"):
        server.check()
    again = PolicyServer(make_policy(), ServerSettings(port=port))
    with again, pytest.raises(TrainingError, match=f"cannot listen on 127.0.0.1:{port}"):
        PolicyServer(make_policy(), ServerSettings(port=port)).start()


def test_a_server_leaves_the_logging_of_other_servers_in_the_process_alone(policy: Policy) -> None:
    """A platform's server may be answering while ours is made: its lines must not reach the terminal."""
    loggers = [logging.getLogger(name) for name in ("uvicorn", "uvicorn.error")]
    kept = [logging.NullHandler() for _ in loggers]
    for logger, handler in zip(loggers, kept, strict=True):
        logger.addHandler(handler)
    before = [list(logger.handlers) for logger in loggers]
    PolicyServer(policy)
    after = [list(logger.handlers) for logger in loggers]
    for logger, handler in zip(loggers, kept, strict=True):
        logger.removeHandler(handler)
    assert after == before
