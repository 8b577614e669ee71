from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import pytest

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.report.facts import Facts
from milegpo_plugin.report.graph_figure import Drawing, graph_figure
from milegpo_plugin.report.group_data import draw_group
from milegpo_plugin.report.layout import curve
from milegpo_plugin.report.page import batch_facts
from milegpo_plugin.report.run_figures import run_figures
from milegpo_plugin.report.sampling import ATTEMPTS
from milegpo_plugin.types import Trajectory


@pytest.fixture(scope="module")
def houses(play_houses: Callable[..., list[Trajectory]]) -> Facts:
    return batch_facts(play_houses(10, 8, 50), CreditConfig())


def drawings(facts: Facts) -> list[Drawing]:
    return [draw_group(facts, group, ATTEMPTS[0]) for group in range(len(facts.credit.batch.task_ids))]


def test_states_stand_by_their_distance_to_the_goal(houses: Facts) -> None:
    for drawing in drawings(houses):
        layout = drawing.layout
        for node, (x, _) in layout.position.items():
            distance = drawing.nodes[node]["goal_distance"]
            if layout.depth is not None and distance is not None:
                assert x == layout.depth - distance


def test_states_without_a_way_to_the_goal_stand_below_the_others(houses: Facts) -> None:
    below = 0
    for drawing in drawings(houses):
        for node, (_, y) in drawing.layout.position.items():
            lost = drawing.nodes[node]["goal_distance"] is None and drawing.layout.depth is not None
            assert lost == (drawing.layout.band is not None and y < drawing.layout.band)
            below += lost
    assert below > 0


def test_no_two_states_stand_on_top_of_each_other(houses: Facts) -> None:
    for drawing in drawings(houses):
        points = np.array([*drawing.layout.position.values()])
        gaps = np.abs(points[:, None] - points[None]).max(axis=2)
        np.fill_diagonal(gaps, 1.0)
        assert gaps.min() > 0.3


def test_without_a_success_states_stand_by_steps_from_the_start(fork: Callable[[], list[Trajectory]]) -> None:
    facts = batch_facts(fork()[2:], CreditConfig())
    layout = draw_group(facts, 0, ATTEMPTS[0]).layout
    assert layout.depth is None
    states = {facts.nodes[node]["state"]: x for node, (x, _) in layout.position.items()}
    assert states == {"start": 0.0, "fork": 1.0, "pit": 2.0}


def test_a_layout_does_not_depend_on_the_order_of_the_input(
    play_houses: Callable[..., list[Trajectory]],
) -> None:
    batch = play_houses(1)
    first, second = (draw_group(batch_facts(b, CreditConfig()), 0, ATTEMPTS[0]) for b in (batch, batch[::-1]))
    assert first.layout == second.layout


def test_a_large_group_draws_its_named_and_most_visited_states(houses: Facts) -> None:
    limits = ATTEMPTS[0].__class__(rollouts=8, rollouts_per_group=8, steps=50, states=12, text=100)
    drawing = draw_group(houses, 0, limits)
    assert len(drawing.nodes) == 12
    assert any(record["kind"] == "goal" for record in drawing.nodes.values())
    assert any(record["name"] == "M1" for record in drawing.nodes.values())


def test_a_curve_joins_its_ends_and_a_loop_returns_to_its_state() -> None:
    points = curve((0.0, 0.0), (2.0, 1.0), both_ways=True)
    np.testing.assert_allclose(points[[0, -1]], [[0, 0], [2, 1]], atol=1e-12)
    loop = curve((1.0, 1.0), (1.0, 1.0), both_ways=False)
    np.testing.assert_allclose(loop[[0, -1]], [[1, 1], [1, 1]], atol=1e-12)
    assert np.ptp(loop, axis=0).min() > 0.1


def test_two_moves_between_the_same_states_do_not_hide_each_other() -> None:
    there, back = curve((0.0, 0.0), (1.0, 0.0), both_ways=True), curve((1.0, 0.0), (0.0, 0.0), both_ways=True)
    assert abs(there[2, 1] - back[2, 1]) > 0.1


def test_plotly_accepts_every_figure(houses: Facts) -> None:
    for drawing in drawings(houses):
        figure = go.Figure(graph_figure(drawing, houses.credit.config))
        assert [len(figure.data[-1].x), len(figure.data[-2].x)] == [len(drawing.nodes), len(drawing.edges)]


def test_hovering_finds_every_state_and_move_by_its_place(houses: Facts) -> None:
    drawing = draw_group(houses, 1, ATTEMPTS[0])
    *lines, moves, states = graph_figure(drawing, houses.credit.config)["data"]
    assert all(trace["hoverinfo"] == "skip" for trace in lines)
    assert states["customdata"] == [["node", place] for place in range(len(drawing.nodes))]
    assert moves["customdata"] == [["edge", place] for place in range(len(drawing.edges))]
    assert all("interval" in text for text in [*states["hovertext"], *moves["hovertext"]])


def test_a_run_without_values_has_no_figures() -> None:
    assert run_figures([{"iteration": 0}]) == []
