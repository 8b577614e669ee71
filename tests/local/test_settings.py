from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from milegpo_plugin.errors import ConfigError
from milegpo_plugin.local.model import build_policy
from milegpo_plugin.local.settings import LocalSettings, ModelSettings


def test_importing_the_settings_loads_no_torch() -> None:
    code = "import sys, milegpo_plugin.local.settings; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learner": {"learning_rate": 0}}, "learner.learning_rate: input should be greater than 0, got 0"),
        ({"server": {"prot": 1}}, "server.prot: extra inputs are not permitted"),
        ({"model": {"lora": {"rank": 4}}}, "lora needs a pretrained model; set path"),
        (
            {"model": {"tiny": {"hidden_size": 90, "heads": 4}}},
            "hidden_size must be an even multiple of heads",
        ),
    ],
)
def test_a_bad_setting_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match="local backend settings: ") as caught:
        LocalSettings.load(values)
    assert message in str(caught.value)


def test_settings_come_from_yaml(tmp_path: Path) -> None:
    file = tmp_path / "local.yaml"
    file.write_text("model:\n  tiny:\n    layers: 3\nseed: 4\n")
    settings = LocalSettings.from_file(file)
    assert (settings.model.tiny.layers, settings.seed) == (3, 4)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"path": "no/such/model"}, "model.path: cannot load"),
        ({"device": "warp"}, "model.device: torch cannot use 'warp'"),
    ],
)
def test_an_unusable_model_or_device_is_a_config_error(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_policy(ModelSettings(**values), sample_texts=["x"])
