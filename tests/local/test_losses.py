from __future__ import annotations

import math

import pytest
import torch

from milegpo_plugin.local.losses import clipped_policy_loss, k3, token_weights


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss"),
    [
        (1.0, 2.0, -2.0),
        (1.5, 2.0, -2.6),  # clipped at 1 + 0.3
        (0.5, 2.0, -1.0),  # a fall with a good outcome is not clipped
        (0.5, -1.0, 0.8),  # clipped at 1 - 0.2
        (1.5, -1.0, 1.5),  # a rise with a bad outcome is not clipped
    ],
)
def test_the_clipped_loss_by_hand(ratio: float, advantage: float, loss: float) -> None:
    result = clipped_policy_loss(
        torch.tensor([ratio]), torch.tensor([advantage]), clip_low=0.2, clip_high=0.3
    )
    assert float(result) == pytest.approx(loss)


def test_k3_by_hand() -> None:
    values = k3(torch.tensor([0.0, math.log(2.0), math.log(0.5)]))
    assert values.tolist() == pytest.approx([0.0, 1.0 - math.log(2.0), -0.5 + math.log(2.0)])


def test_token_mean_and_row_mean_by_hand() -> None:
    rows = torch.tensor([0, 0, 0, 2])
    assert token_weights(rows, "token").tolist() == pytest.approx([0.25] * 4)
    assert token_weights(rows, "row").tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])
