from __future__ import annotations

from pathlib import Path

import pytest

from milegpo_plugin.agl.settings import BackendSettings
from milegpo_plugin.agl.v1.settings import read_settings, write_settings
from milegpo_plugin.config import CreditConfig, StateConfig
from milegpo_plugin.errors import ConfigError
from milegpo_plugin.trajectories import ReconstructOptions
from milegpo_plugin.types import Step


def room_of(step: Step) -> str:
    return step.observation[-1]["content"].split()[0]


def test_settings_come_back_as_they_went(tmp_path: Path) -> None:
    settings = BackendSettings(
        credit=CreditConfig.preset(
            "webshop", on_failure="zero", states=StateConfig(masks=("numbers",), history=2)
        ),
        reconstruct=ReconstructOptions(reward_name="score", agents=("planner", "!critic")),
        dump_dir=tmp_path,
    )
    back = read_settings(write_settings(settings))
    assert back.credit == settings.credit
    assert tuple(back.reconstruct.agents) == settings.reconstruct.agents
    assert back.reconstruct.reward_name == "score"
    assert back.dump_dir == tmp_path


def test_no_section_means_the_defaults() -> None:
    assert read_settings(None) == BackendSettings()


def test_a_section_may_be_written_by_hand() -> None:
    settings = read_settings({"credit": {"preset": "webshop", "estimator": "gigpo"}})
    assert settings.credit == CreditConfig.preset("webshop", estimator="gigpo")


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (
            {"credits": {}},
            "milegpo: must have no other keys than credit, dump_dir, reconstruct, got 'credits'",
        ),
        ({"reconstruct": {"tasks": {}}}, "milegpo.reconstruct: .* got 'tasks'"),
        ({"credit": {"mix_weight": 2}}, "mix_weight: .* got 2"),
        ({"credit": "alfword"}, "preset must be one of .* got 'alfword'"),
    ],
)
def test_a_wrong_section_is_refused_by_name(section: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_settings(section)


def test_a_state_function_travels_by_name() -> None:
    settings = BackendSettings(credit=CreditConfig(states=StateConfig(function=room_of)))
    assert write_settings(settings)["credit"]["states"]["function"] == f"{__name__}:room_of"


def test_a_state_function_that_no_other_process_can_import_is_refused() -> None:
    settings = BackendSettings(credit=CreditConfig(states=StateConfig(function=lambda step: "x")))
    with pytest.raises(ConfigError, match="move it to a file"):
        write_settings(settings)
