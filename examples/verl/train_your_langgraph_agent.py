"""Your own LangGraph agent: ``python examples/verl/train_your_langgraph_agent.py --dry-run``.

Put your file in place of ``agents/langgraph_porter.py``: a function that takes a task and returns
what happened, and nothing else. ``porter_reward.py`` turns that into a reward.

Needs ``pip install langgraph langchain-openai``.
"""

from __future__ import annotations

from recipe import Tasks, run

TRAIN_SEEDS, HELD_OUT_SEEDS = range(1000), range(10_000, 10_064)


def houses(seeds: range) -> Tasks:
    """One task per house."""
    return [{"seed": seed} for seed in seeds]


if __name__ == "__main__":
    run(
        "your_langgraph_agent",
        agent="langgraph_porter.py:play",
        reward="porter_reward.py:score",
        train=lambda: houses(TRAIN_SEEDS),
        validation=lambda: houses(HELD_OUT_SEEDS),
        train_size=len(TRAIN_SEEDS),
    )
