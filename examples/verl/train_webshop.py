"""WebShop with the paper's settings: ``python examples/verl/train_webshop.py --dry-run``.

Needs a checkout of princeton-nlp/WebShop, set up as its README says, on ``PYTHONPATH``.
"""

from __future__ import annotations

from recipe import Tasks, run

TEST_GOALS, VALIDATION_GOALS, ALL_GOALS = 500, 1500, 6910
"""WebShop's own split of its goals: 0–499 test, 500–1499 validation, the others training."""


def goals(first: int, last: int) -> Tasks:
    """One task per shopping goal."""
    return [{"goal": goal} for goal in range(first, last)]


if __name__ == "__main__":
    run(
        "webshop",
        agent="webshop_player.py:play",
        train=lambda: goals(VALIDATION_GOALS, ALL_GOALS),
        validation=lambda: goals(0, TEST_GOALS),
        train_size=ALL_GOALS - VALIDATION_GOALS,
    )
