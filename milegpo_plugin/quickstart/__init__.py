"""The quickstart's agent, reward, texts and settings, as files; nothing is imported from them.

``coin_player.py`` is a link to ``agents/coin_player.py``: the agent as its owner wrote it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent
AGENT: Final = f"{FOLDER / 'coin_player.py'}:play"
REWARD: Final = f"{FOLDER / 'outcome.py'}:found_coin"
CONFIG: Final = FOLDER / "config.yaml"
TEXTS: Final = FOLDER / "house_texts.txt"

TRAINING_HOUSES: Final = 64
HELD_OUT_HOUSES: Final = 128


def training_tasks() -> list[dict[str, Any]]:
    """Houses of TextWorld-Express's training fold, one task each."""
    return [_house("train", seed) for seed in range(1, TRAINING_HOUSES + 1)]


def held_out_tasks() -> list[dict[str, Any]]:
    """Houses of its dev fold; their seeds are never trained on."""
    return [_house("dev", seed) for seed in range(10_001, 10_001 + HELD_OUT_HOUSES)]


def _house(fold: str, seed: int) -> dict[str, Any]:
    return {"task_id": f"{fold}-{seed}", "seed": seed, "fold": fold, "rooms": 4}
