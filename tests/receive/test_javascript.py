"""The endpoint with the real exporters of the OpenTelemetry JavaScript SDK, installed from npm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parent / "js"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder with the script and its packages; needs ``node`` and ``npm``."""
    folder = tmp_path_factory.mktemp("js")
    for file in PROJECT.iterdir():
        shutil.copy(file, folder)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("exporter", ["http", "proto"])
def test_rollouts_of_the_javascript_sdk_are_written(exporter, compression, project, start, traces):
    running = start()
    subprocess.run(
        ["node", "play.mjs", exporter, compression, str(traces / "TRUTH.json")],
        cwd=project,
        check=True,
        timeout=60,
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": running.url},
    )
    (rollout,) = running.wait(1)
    truth = json.loads((traces / "TRUTH.json").read_text(encoding="utf-8"))
    assert rollout["rollout_id"] == f"js-{exporter}-{compression}"
    assert rollout["task_id"] == truth["task"]
    assert rollout["reward"] == 1.0
    assert {step["agent"] for step in rollout["steps"]} == {"player"}
    assert [step["action"]["text"] for step in rollout["steps"]] == [
        step["assistant_text"] for step in truth["steps"]
    ]
    called = [
        [(call["name"], call["arguments"]) for call in step["action"]["tool_calls"]]
        for step in rollout["steps"]
    ]
    assert called == [[(c["name"], c["arguments"]) for c in step["tool_calls"]] for step in truth["steps"]]
