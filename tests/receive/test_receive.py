"""``milegpo receive`` with the real exporter of the OpenTelemetry Python SDK."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

from milegpo_plugin.errors import ConfigError, InputNotFoundError
from milegpo_plugin.files import read_input
from milegpo_plugin.receive import Receiver
from milegpo_plugin.trajectories import ReconstructOptions


@pytest.fixture(params=[Compression.NoCompression, Compression.Gzip], ids=["plain", "gzip"])
def exporter_to(request):
    """The exporter of the SDK, which sends protobuf."""
    return lambda url: OTLPSpanExporter(endpoint=f"{url}/v1/traces", compression=request.param)


def play(tracer, truth, session, steps=None):
    """The scripted game as a client that follows the GenAI conventions traces it."""
    history = [{"role": "system", "content": truth["system"]}, {"role": "user", "content": truth["task"]}]
    with tracer.start_as_current_span("invoke_agent player") as run:
        run.set_attribute("gen_ai.operation.name", "invoke_agent")
        run.set_attribute("gen_ai.agent.name", "player")
        run.set_attribute("gen_ai.conversation.id", session)
        for step in truth["steps"][:steps]:
            parts = [{"type": "text", "content": step["assistant_text"]}] if step["assistant_text"] else []
            for call in step["tool_calls"]:
                call_id = f"{session}-{len(history)}-{call['name']}"
                parts.append(
                    {"type": "tool_call", "id": call_id, **{k: call[k] for k in ("name", "arguments")}}
                )
            with tracer.start_as_current_span("chat game") as span:
                span.set_attribute("gen_ai.operation.name", "chat")
                span.set_attribute("gen_ai.input.messages", json.dumps(history))
                reply = {"role": "assistant", "parts": parts}
                span.set_attribute("gen_ai.output.messages", json.dumps([reply]))
            history.append(reply)
            for part, call in zip(
                [p for p in parts if p["type"] == "tool_call"], step["tool_calls"], strict=True
            ):
                answer = {
                    "type": "tool_call_response",
                    "id": part["id"],
                    "response": call["result"] or call["error"],
                }
                history.append({"role": "tool", "parts": [answer]})
        run.add_event(
            "gen_ai.evaluation.result",
            {"gen_ai.evaluation.name": "won", "gen_ai.evaluation.score.value": 1.0},
        )


@pytest.fixture(scope="session")
def truth(traces):
    return json.loads((traces / "TRUTH.json").read_text(encoding="utf-8"))


def actions(rollout):
    return [[(c["name"], c["arguments"]) for c in step["action"]["tool_calls"]] for step in rollout["steps"]]


def test_rollouts_of_the_python_sdk_are_written_when_they_are_quiet(start, exporter_to, truth):
    running = start(idle_s=0.5)
    provider = TracerProvider(resource=Resource({"service.name": "game"}))
    provider.add_span_processor(BatchSpanProcessor(exporter_to(running.url), max_export_batch_size=4))
    for session in ("one", "two"):
        play(provider.get_tracer("game"), truth, session)
    assert provider.force_flush()
    rollouts = running.wait(2)
    provider.shutdown()
    assert sorted(rollout["rollout_id"] for rollout in rollouts) == ["one", "two"]
    for rollout in rollouts:
        assert actions(rollout) == [
            [(c["name"], c["arguments"]) for c in s["tool_calls"]] for s in truth["steps"]
        ]
        assert rollout["reward"] == 1.0
        assert {step["agent"] for step in rollout["steps"]} == {"player"}


def test_what_is_not_done_when_the_receiver_stops_is_written_too(start, truth):
    running = start(idle_s=1000)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{running.url}/v1/traces")))
    play(provider.get_tracer("game"), truth, "one", steps=3)
    assert not running.file.exists()
    (rollout,) = running.stop()
    assert len(rollout["steps"]) == 3


def test_everything_that_was_answered_before_the_stop_is_written(start):
    running = start(idle_s=1000)
    answered = []

    def export(worker):
        """One call a request, each a trace of its own, until the receiver takes no more."""
        client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
        for number in range(2000):
            body = one_call(f"{worker:016x}{number:016x}", f"call {number} of {worker}")
            try:
                client.request("POST", "/v1/traces", body, {"Content-Type": "application/json"})
                if client.getresponse().read() != b"{}":
                    return
            except (OSError, http.client.HTTPException):
                return
            answered.append(f"call {number} of {worker}")

    threads = [threading.Thread(target=export, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    while len(answered) < 40:
        time.sleep(0.001)
    rollouts = running.stop()
    for thread in threads:
        thread.join()
    written = [step["action"]["text"] for rollout in rollouts for step in rollout["steps"]]
    assert sorted(written) == sorted(answered)


def one_call(trace_id, text):
    """An export request with one model call."""
    values = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([{"role": "user", "content": f"task of {text}"}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": text}]),
    }
    span = {
        "traceId": trace_id,
        "spanId": trace_id[16:],
        "name": "chat game",
        "startTimeUnixNano": "1796050000000000000",
        "endTimeUnixNano": "1796050000000000001",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in values.items()],
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})


def test_a_rollout_that_goes_on_after_it_was_written_is_told(start, truth, traces):
    running = start(idle_s=0.2)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{running.url}/v1/traces")))
    tracer = provider.get_tracer("game")
    with tracer.start_as_current_span("experiment"):
        play(tracer, truth, "one")
        running.wait(1)
        play(tracer, truth, "two")
        running.wait(2)
    assert [item.went_on for item in running.told if item.result.trajectories] == [False, True]


def test_the_written_file_is_read_by_the_other_commands(start, truth):
    running = start()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{running.url}/v1/traces")))
    play(provider.get_tracer("game"), truth, "one")
    running.wait(1)
    (trajectory,) = read_input([running.file]).trajectories
    assert trajectory.task_id == truth["task"]


def test_a_port_that_is_taken_and_a_missing_folder_are_named(tmp_path):
    given = {"host": "127.0.0.1", "idle_s": 1.0, "options": ReconstructOptions(), "tell": print}
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}"):
            Receiver(tmp_path / "live", port=port, **given)
    with pytest.raises(InputNotFoundError, match="no such folder"):
        Receiver(tmp_path / "no" / "live", port=0, **given)


@pytest.fixture
def command(tmp_path):
    """The command as a process of its own, and the address that it prints."""
    folder = tmp_path / "live"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "milegpo_plugin",
            "receive",
            "--port",
            "0",
            "-o",
            str(folder),
            "--idle",
            "600",
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
    yield process, found[0], folder
    process.kill()
    process.communicate()


def test_the_command_writes_everything_and_a_summary_when_it_is_stopped(command, truth):
    process, url, folder = command
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{url}/v1/traces")))
    play(provider.get_tracer("game"), truth, "one")
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 0
    assert "one: 6 steps, reward 1" in output
    assert "wrote 1 rollouts" in output
    assert len((folder / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()) == 1
