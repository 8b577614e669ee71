"""Wilson intervals, and what they change when they are asked to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit
from milegpo_plugin.credit.uncertainty import wilson_interval


@settings(max_examples=60, deadline=None)
@given(trials=st.integers(1, 500), share=st.floats(0, 1), confidence=st.floats(0.5, 0.999))
def test_the_wilson_interval_is_that_of_scipy(trials, share, confidence):
    successes = round(share * trials)
    low, high = wilson_interval(np.array([successes]), np.array([trials]), confidence)
    expected = binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.fixture
def lucky_and_solid(rollout):
    """From the door, seven go by the solid path and win; one goes by a lucky path and wins; four fail."""
    solid = [rollout(["door", "solid"], 1.0, rollout_id=f"s{number}") for number in range(7)]
    lucky = [rollout(["door", "lucky"], 1.0, rollout_id="lucky")]
    lost = [
        rollout(["door", "dark"], 0.0, final_state="wall", rollout_id=f"x{number}") for number in range(4)
    ]
    return solid + lucky + lost


def nodes(trajectories, **config):
    return {
        node["state"]: node for node in assign_credit(trajectories, CreditConfig(**config)).node_records()
    }


def test_nodes_carry_their_counts_and_interval(lucky_and_solid):
    records = nodes(lucky_and_solid)
    assert (records["solid"]["successes"], records["solid"]["failures"]) == (7, 0)
    assert records["solid"]["success_low"] == pytest.approx(1 / (1 + 1.959964**2 / 7), abs=1e-6)
    assert records["lucky"]["success_low"] == pytest.approx(1 / (1 + 1.959964**2), abs=1e-6)
    assert records["dark"]["success_low"] == 0.0
    assert records["dark"]["success_high"] == pytest.approx(1 - 1 / (1 + 1.959964**2 / 4), abs=1e-6)


def test_a_lower_bound_keeps_a_lucky_rollout_from_making_a_milestone(lucky_and_solid):
    empirical = nodes(lucky_and_solid, stage="md")
    bounded = nodes(lucky_and_solid, stage="md", reliability="lower_bound")
    assert empirical["lucky"]["milestone_potential"] == empirical["solid"]["milestone_potential"] == 1.0
    assert bounded["solid"]["milestone_potential"] == pytest.approx(bounded["solid"]["success_low"])
    assert bounded["lucky"]["milestone_potential"] == pytest.approx(bounded["lucky"]["success_low"])


def test_a_branch_counts_by_how_far_its_interval_stands_apart(rollout):
    few = [rollout(["door", "left"], 1.0, rollout_id="w0"), rollout(["door", "right"], 0.0, rollout_id="l0")]
    many = [
        rollout(["door", side], reward, rollout_id=f"{side}{number}")
        for side, reward in (("left", 1.0), ("right", 0.0))
        for number in range(8)
    ]
    for batch in (few, many):
        assert nodes(batch)["left"]["branch_evidence"] == 1.0
    # one against one: [0.207, 1] and [0, 0.793] share 0.587 of 0.793
    assert nodes(few, reliability="lower_bound")["left"]["branch_evidence"] == pytest.approx(
        1 - 0.58690 / 0.79345, abs=1e-4
    )
    assert nodes(many, reliability="lower_bound")["left"]["branch_evidence"] == 1.0


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_lower_bound_never_raises_a_potential(data, batches, settings_of_credit):
    batch = data.draw(batches())
    config = data.draw(settings_of_credit(keep_branch=False, branch_weight=0.0))
    empirical = assign_credit(batch, config)
    bounded = assign_credit(batch, config.model_copy(update={"reliability": "lower_bound"}))
    assert (bounded.milestone_potential_N <= empirical.milestone_potential_N + 1e-12).all()
    assert (np.abs(bounded.branch_contrast_E) <= np.abs(empirical.branch_contrast_E)).all()
    np.testing.assert_array_equal(bounded.trap_potential_N, empirical.trap_potential_N)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_confidence_alone_changes_no_credit(data, batches, settings_of_credit):
    batch, config = data.draw(batches()), data.draw(settings_of_credit())
    other = config.model_copy(update={"confidence": 0.5})
    np.testing.assert_array_equal(
        assign_credit(batch, config).advantage_S, assign_credit(batch, other).advantage_S
    )
