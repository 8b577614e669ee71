"""Walk at random through training houses and print every sentence that appears, once.

The quickstart's tokenizer takes its words from this text, so no play but random play is used:
``python examples/quickstart/collect_texts.py > milegpo_plugin/quickstart/house_texts.txt``
"""

import random
import runpy
from pathlib import Path

AGENT = Path(__file__).parents[2] / "agents" / "coin_player.py"
HOUSES = 60
MOVES = 30


def walk(env, seed: int, rng: random.Random) -> list[str]:
    """The observations of one random walk."""
    observation, infos = env.reset(seed=seed, gameFold="train")
    seen = [observation]
    for _ in range(MOVES):
        observation, _, done, infos = env.step(rng.choice(sorted(infos["validActions"])))
        seen.append(observation)
        if done:
            break
    return seen


def main() -> None:
    """Print the sentences in alphabetical order."""
    agent = runpy.run_path(str(AGENT))
    env = agent["load_game"](4)
    rng = random.Random(0)
    texts = [text for seed in range(1, HOUSES + 1) for text in walk(env, seed, rng)]
    sentences = {part.strip() for text in texts for line in text.splitlines() for part in line.split(". ")}
    print(agent["SYSTEM"])
    print("look inventory exits move direction north east south west take item coin")
    print("\n".join(sorted(sentence.rstrip(".") + "." for sentence in sentences if sentence)))


if __name__ == "__main__":
    main()
