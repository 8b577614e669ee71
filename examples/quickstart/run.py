"""Train the coin agent through the public API: ``python examples/quickstart/run.py RUN_DIR``.

Any agent can stand here: ``UserAgent`` runs a function or a script as it is, and any other
``agentlightning.LitAgent`` works as well.
"""

import sys
from pathlib import Path

import agentlightning

from milegpo_plugin import LocalMileGPO
from milegpo_plugin.agl.agent import UserAgent

REPOSITORY = Path(__file__).parents[2]
FILES = REPOSITORY / "milegpo_plugin" / "quickstart"


def houses(fold: str, first: int, count: int) -> list[dict]:
    """Tasks: one house a seed."""
    seeds = range(first, first + count)
    return [{"task_id": f"{fold}-{seed}", "seed": seed, "fold": fold} for seed in seeds]


def main() -> None:
    """Train, and keep everything in the folder that the command line names."""
    algorithm = LocalMileGPO(
        FILES / "config.yaml",
        run_dir=sys.argv[1] if len(sys.argv) > 1 else "runs/by-hand",
        sample_texts=(FILES / "house_texts.txt").read_text(encoding="utf-8").splitlines(),
    )
    trainer = agentlightning.Trainer(algorithm=algorithm, n_runners=3)
    agent = UserAgent(
        f"{REPOSITORY / 'agents' / 'coin_player.py'}:play", f"{FILES / 'outcome.py'}:found_coin"
    )
    trainer.fit(agent, train_dataset=houses("train", 1, 64), val_dataset=houses("dev", 10_001, 64))


if __name__ == "__main__":
    main()
