"""Train an unmodified agent with step credit on Agent Lightning 1.0 and verl.

    python examples/agl1/train.py [--dry-run] [key=value …]

``run_local.sh`` starts the gateway and the controller that it needs. Every ``key=value`` changes
the trainer's config.
"""

from __future__ import annotations

import argparse
import importlib.resources
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from milegpo_plugin.agl.v1 import configure, use_agent

HERE = Path(__file__).parent
AGENT = f"{HERE.parent.parent / 'agents' / 'coin_player.py'}:play"
REWARD = f"{HERE / 'coin_reward.py'}:found_coin"
SHOWN = ("algorithm", "agentlightning", "milegpo", "ray_kwargs")


def build_config(changes: Sequence[str] = ()) -> DictConfig:
    """Agent Lightning's defaults, then ``config.yaml``, then ``changes`` (``key=value``)."""
    defaults = str(importlib.resources.files("agentlightning.verl"))
    with initialize_config_dir(config_dir=defaults, version_base=None):
        base = compose(config_name="config")
    OmegaConf.set_struct(base, False)
    config = OmegaConf.merge(
        base, OmegaConf.load(HERE / "config.yaml"), OmegaConf.from_dotlist(list(changes))
    )
    assert isinstance(config, DictConfig)
    return config


def houses(fold: str, count: int) -> list[dict[str, Any]]:
    """Tasks: each row goes to the agent as it is, and its rollouts are compared with each other."""
    return [{"fold": fold, "seed": seed, "rooms": 7} for seed in range(1, count + 1)]


def main() -> None:
    """Compose the config, let the plugin check it, and train."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dry-run", action="store_true", help="check and print the config; needs no GPU")
    arguments, changes = parser.parse_known_args()

    config = use_agent(build_config(changes), AGENT, reward=REWARD)
    config = configure(config, credit="alfworld")
    if arguments.dry_run:
        print(OmegaConf.to_yaml({name: config[name] for name in SHOWN}, resolve=False))
        return

    from agentlightning.verl.entrypoint import run_ppo

    run_ppo(config, train_dataset=houses("train", 64), val_dataset=houses("dev", 16))


if __name__ == "__main__":
    main()
