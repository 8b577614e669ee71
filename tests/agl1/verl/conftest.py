from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from agentlightning.verl.agl_rollout_manager import CompletedRollout

from milegpo_plugin.agl.settings import BackendSettings
from milegpo_plugin.agl.v1.adapter import CreditRolloutAdapter
from milegpo_plugin.agl.v1.estimator import register_estimator

os.environ.setdefault("OMP_NUM_THREADS", "1")
TESTS = Path(__file__).parents[2]
CAPTURE = TESTS / "data" / "traces" / "agentlightning10_gateway.rollouts.jsonl"


@pytest.fixture
def completed() -> list[CompletedRollout]:
    """Eight captured rollouts of two tasks, and one of the first task that failed."""
    lines = CAPTURE.read_text(encoding="utf-8").splitlines()
    rollouts = [CompletedRollout.model_validate(json.loads(line)) for line in lines]
    rollouts[8].data_id = rollouts[0].data_id
    return rollouts


@pytest.fixture
def make_adapter() -> Callable[..., CreditRolloutAdapter]:
    register_estimator()

    def make(
        level: str,
        settings: BackendSettings | None = None,
        *,
        prompt: int = 400,
        response: int = 600,
        **fields: Any,
    ) -> CreditRolloutAdapter:
        return CreditRolloutAdapter(
            settings=settings or BackendSettings(),
            rollouts_per_task=4,
            max_prompt_length=prompt,
            max_response_length=response,
            device=torch.device("cpu"),
            pad_token_id=0,
            trace_aggregator_level=level,
            **fields,
        )

    return make
