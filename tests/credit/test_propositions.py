"""What must hold on any input: the method's three propositions, and the laws between estimators."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.credit import assign_credit

PROPERTY = settings(max_examples=40, deadline=None)
EPSILON = 1e-6


@PROPERTY
@given(data=st.data())
def test_the_step_part_is_a_convex_mix_of_graph_and_shaped_advantage(data, batches, settings_of_credit):
    """Proposition 1."""
    batch = data.draw(batches())
    config = data.draw(settings_of_credit(step_weight=1.0, episode_weight=0.0))
    credit = assign_credit(batch, config)
    eta = config.mix_weight
    mix = (1 - eta) * credit.graph_advantage_S + eta * credit.shaped_advantage_S
    np.testing.assert_allclose(credit.advantage_S, mix, rtol=0, atol=1e-12)


@PROPERTY
@given(data=st.data())
def test_without_mixing_milegpo_is_graphgpo_to_the_bit(data, batches, settings_of_credit):
    """Proposition 1 at eta = 0."""
    batch, config = data.draw(batches()), data.draw(settings_of_credit(mix_weight=0.0))
    graphgpo = assign_credit(batch, config.model_copy(update={"estimator": "graphgpo", "mix_weight": 0.7}))
    np.testing.assert_array_equal(assign_credit(batch, config).advantage_S, graphgpo.advantage_S)


@PROPERTY
@given(data=st.data())
def test_graphgpo_is_the_graph_stage_of_milegpo(data, batches, settings_of_credit):
    batch, config = data.draw(batches()), data.draw(settings_of_credit(stage="graph"))
    graphgpo = config.model_copy(update={"estimator": "graphgpo", "stage": "pcc"})
    assert list(assign_credit(batch, config).step_records()) == list(
        assign_credit(batch, graphgpo).step_records()
    )


@PROPERTY
@given(data=st.data())
def test_the_shaped_advantage_orders_transitions_that_tie_under_the_graph(data, batches, settings_of_credit):
    """Proposition 2: among ties of one state the advantage follows the shaped return."""
    batch = data.draw(batches())
    credit = assign_credit(
        batch, data.draw(settings_of_credit(mix_weight=0.5, step_weight=1.0, episode_weight=0.0))
    )
    own = credit.advantage_S
    for state in np.unique(credit.batch.source_S):
        members = np.flatnonzero(credit.batch.source_S == state)
        for graph_return in np.unique(credit.graph_return_S[members]):
            tied = members[credit.graph_return_S[members] == graph_return]
            ranked = tied[np.argsort(credit.shaped_return_S[tied])]
            assert (np.diff(own[ranked]) >= -1e-9).all()
            rises = np.diff(credit.shaped_return_S[ranked]) > 1e-3
            assert (np.diff(own[ranked])[rises] > 0).all()


@PROPERTY
@given(data=st.data())
def test_shaping_moves_a_return_within_its_bounds(data, batches, settings_of_credit):
    """Proposition 3."""
    batch, config = data.draw(batches()), data.draw(settings_of_credit())
    credit = assign_credit(batch, config)
    assert (credit.delta_plus_S >= 0).all()
    assert (credit.delta_plus_S <= config.milestone_weight).all()
    assert (credit.delta_minus_S >= 0).all()
    assert (credit.delta_minus_S <= config.trap_weight).all()
    scale = config.return_scale * config.shaping_weight
    moved = credit.shaped_return_S - credit.graph_return_S
    assert (moved >= -scale * config.trap_weight - 1e-12).all()
    assert (moved <= scale * config.milestone_weight + 1e-12).all()


def test_the_bounds_at_the_defaults_are_those_of_the_paper():
    config = CreditConfig()
    scale = config.return_scale * config.shaping_weight
    assert (-scale * config.trap_weight, scale * config.milestone_weight) == (-0.625, 2.5)


@PROPERTY
@given(data=st.data())
def test_without_step_weight_milegpo_and_gigpo_are_grpo(data, batches, settings_of_credit):
    batch, config = data.draw(batches()), data.draw(settings_of_credit(step_weight=0.0))
    grpo = assign_credit(batch, config.model_copy(update={"estimator": "grpo"})).advantage_S
    for estimator in ("milegpo", "gigpo"):
        credit = assign_credit(batch, config.model_copy(update={"estimator": estimator}))
        np.testing.assert_array_equal(credit.advantage_S, grpo)


@PROPERTY
@given(data=st.data())
def test_hgpo_without_history_is_the_step_part_of_gigpo_up_to_its_std(data, batches):
    batch = data.draw(batches())
    for norm in ("mean", "mean_std"):
        config = CreditConfig(norm=norm, episode_weight=0.0, hgpo_history=0)
        gigpo = assign_credit(batch, config.model_copy(update={"estimator": "gigpo"}))
        hgpo = assign_credit(batch, config.model_copy(update={"estimator": "hgpo"}))
        expected = gigpo.advantage_S.copy()
        if norm == "mean_std":
            returns = assign_credit(batch, config.model_copy(update={"estimator": "gigpo", "norm": "mean"}))
            for state in np.unique(gigpo.batch.source_S):
                members = gigpo.batch.source_S == state
                centred, size = returns.advantage_S[members], members.sum()
                sample = np.sqrt((centred**2).sum() / max(size - 1, 1)) + EPSILON
                population = np.sqrt((centred**2).sum() / size) + EPSILON
                expected[members] *= sample / population
        np.testing.assert_allclose(hgpo.advantage_S, expected, rtol=1e-9, atol=1e-12)


@PROPERTY
@given(
    data=st.data(),
    estimator=st.sampled_from(["milegpo", "graphgpo", "plangpo", "gigpo", "hgpo", "grpo", "rloo"]),
)
def test_the_order_of_the_input_changes_nothing(data, batches, settings_of_credit, estimator):
    batch, config = data.draw(batches()), data.draw(settings_of_credit(estimator=estimator))
    shuffled = data.draw(st.permutations(batch))
    straight, mixed = assign_credit(batch, config), assign_credit(shuffled, config)
    assert list(straight.step_records()) == list(mixed.step_records())
    assert list(straight.node_records()) == list(mixed.node_records())
    assert straight.metrics() == mixed.metrics()
    for index, trajectory in enumerate(batch):
        elsewhere = shuffled.index(trajectory)
        np.testing.assert_array_equal(straight.advantages(index), mixed.advantages(elsewhere))


@PROPERTY
@given(data=st.data(), estimator=st.sampled_from(["milegpo", "plangpo", "gigpo", "hgpo", "grpo", "rloo"]))
def test_a_group_gets_the_same_credit_alone_and_in_a_batch(data, batches, settings_of_credit, estimator):
    batch, config = data.draw(batches()), data.draw(settings_of_credit(estimator=estimator))
    together = assign_credit(batch, config)
    for task_id in {item.task_id for item in batch}:
        alone = assign_credit([item for item in batch if item.task_id == task_id], config)
        ours = [record for record in together.step_records() if record["task_id"] == task_id]
        assert ours == list(alone.step_records())


@PROPERTY
@given(
    data=st.data(),
    estimator=st.sampled_from(["milegpo", "graphgpo", "plangpo", "gigpo", "hgpo", "grpo", "rloo"]),
)
def test_every_value_is_finite(data, batches, settings_of_credit, estimator):
    credit = assign_credit(data.draw(batches()), data.draw(settings_of_credit(estimator=estimator)))
    for name in credit.__slots__:
        value = getattr(credit, name)
        if isinstance(value, np.ndarray):
            assert np.isfinite(value).all(), name
            assert value.dtype in (np.float64, np.bool_), name
