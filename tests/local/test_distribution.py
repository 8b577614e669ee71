from __future__ import annotations

import math

import pytest
import torch

from milegpo_plugin.local.distribution import draw, entropy, log_distribution, nucleus

EVERY = torch.ones(1, 4, dtype=torch.bool)
PROBABILITIES = torch.tensor([[0.5, 0.25, 0.15, 0.1]])


def test_mask_and_temperature_by_hand() -> None:
    logits = torch.tensor([[0.0, math.log(4.0), 100.0, 100.0]])
    allowed = torch.tensor([[True, True, False, False]])
    # Temperature 2 halves the logits: odds 1 : 4 become 1 : 2.
    log_probs = log_distribution(logits, allowed, torch.tensor([2.0]))
    assert log_probs.exp()[0].tolist() == pytest.approx([1 / 3, 2 / 3, 0.0, 0.0])


def test_entropy_counts_allowed_tokens_only() -> None:
    allowed = torch.tensor([[True, True, False, False]])
    log_probs = log_distribution(torch.zeros(1, 4), allowed, torch.ones(1))
    assert float(entropy(log_probs)) == pytest.approx(math.log(2.0))


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.5, 1), (0.51, 2), (0.75, 2), (0.89, 3), (1.0, 4), (0.01, 1)],
)
def test_the_nucleus_is_the_smallest_set_that_reaches_top_p(top_p: float, kept: int) -> None:
    chosen = nucleus(PROBABILITIES.log(), torch.tensor([top_p]))
    assert chosen[0].tolist() == [index < kept for index in range(4)]


@pytest.mark.parametrize(
    ("uniform", "token"), [(0.0, 0), (0.49, 0), (0.51, 1), (0.76, 2), (0.91, 3), (1 - 2**-53, 3)]
)
def test_drawing_inverts_the_cumulative_distribution(uniform: float, token: int) -> None:
    drawn = draw(PROBABILITIES.log(), torch.tensor([uniform], dtype=torch.float64))
    assert int(drawn) == token


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1 - 2**-53])
def test_a_token_that_is_not_allowed_is_never_drawn(uniform: float) -> None:
    allowed = torch.tensor([[False, True, True, False]])
    log_probs = log_distribution(torch.zeros(1, 4), allowed, torch.ones(1))
    assert int(draw(log_probs, torch.tensor([uniform], dtype=torch.float64))) in (1, 2)
