"""The page about the embedded backend names every setting with its default, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from milegpo_plugin.local.settings import LearnerSettings, LoraSettings, ModelSettings, ServerSettings
from milegpo_plugin.local.settings import TinyModelSettings as Tiny
from milegpo_plugin.local.train_config import LoopSettings, TrainConfig

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/embedded_backend.md").read_text(encoding="utf-8")
SECTIONS: dict[str, type[BaseModel]] = {
    "train": LoopSettings,
    "model": ModelSettings,
    "model.lora": LoraSettings,
    "model.tiny": Tiny,
    "server": ServerSettings,
    "learner": LearnerSettings,
}


def shown(value: object) -> str:
    if isinstance(value, BaseModel):
        return "{…}"
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


@pytest.mark.parametrize("section", SECTIONS)
def test_the_table_of_a_section_is_that_of_the_settings(section: str) -> None:
    text = PAGE.split(f"### `{section}`\n")[1].split("\n#")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| .+ \|$", text, re.MULTILINE)
    assert rows == [(name, shown(field.default)) for name, field in SECTIONS[section].model_fields.items()]


def test_every_section_is_on_the_page() -> None:
    assert re.findall(r"^### `([\w.]+)`$", PAGE, re.MULTILINE) == list(SECTIONS)
    top = PAGE.split("Top level: ")[1].split(" (torch's")[0]
    assert re.findall(r"`(\w+)`", top) == list(TrainConfig.model_fields)


def test_every_config_on_the_page_is_valid() -> None:
    configs = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert configs
    for text in configs:
        TrainConfig.load(yaml.safe_load(text))


def test_every_setting_that_the_text_names_exists() -> None:
    named = re.findall(r"`(train|model|server|learner)\.(\w+)`", PAGE)
    assert named
    assert all(name in SECTIONS[section].model_fields for section, name in named)


def test_the_example_for_a_gpu_is_valid() -> None:
    config = TrainConfig.from_file(ROOT / "examples/local/cuda.yaml")
    assert (config.model.device, config.model.dtype) == ("cuda", "bfloat16")
    assert config.server.max_prompt_tokens + config.server.max_response_tokens <= 32_768
