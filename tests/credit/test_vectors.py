"""Every node, edge and step value of the golden groups, to 1e-9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from milegpo_plugin.credit import assign_credit

TOLERANCE = {"rtol": 0.0, "atol": 1e-9}
NODE_FIELDS = {
    "distance": "goal_distance",
    "milestone_score": "milestone_score",
    "trap_score": "trap_score",
    "branch": "branch_evidence",
    "progress": "progress_evidence",
    "calibrated_score": "calibrated_score",
    "potential_plus": "milestone_potential",
    "potential_minus": "trap_potential",
}
STEP_FIELDS = {
    "state": "state",
    "graph_return": "graph_return",
    "mile_return": "shaped_return",
    "delta_plus": "delta_plus",
    "delta_minus": "delta_minus",
    "adv_graph": "graph_advantage",
    "adv_mix": "shaped_advantage",
    "advantage": "advantage",
}
EDGE_FIELDS = {
    "margin": "margin_E",
    "bcc": "branch_contrast_E",
    "progress": "progress_E",
}


@pytest.fixture(params=range(60))
def vector(request, vectors) -> dict[str, Any]:
    return vectors[request.param]


def test_every_node_value_of_a_golden_group_is_reproduced(vector, from_vector):
    credit = assign_credit(*from_vector(vector))
    records = {record["state"]: record for record in credit.node_records()}
    expected = vector["expected"]["nodes"]
    assert records.keys() == expected.keys()
    for state, values in expected.items():
        record = records[state]
        assert record["successes"] / record["visits"] == pytest.approx(values["success_rate"], abs=1e-9)
        for theirs, ours in NODE_FIELDS.items():
            assert record[ours] == pytest.approx(values[theirs], abs=1e-9), (state, ours)


def test_every_edge_value_of_a_golden_group_is_reproduced(vector, from_vector):
    credit = assign_credit(*from_vector(vector))
    graph, names = credit.graph, credit.batch.state_N
    edges = {
        (names[source], names[target]): edge
        for edge, (source, target) in enumerate(zip(graph.source_E, graph.target_E, strict=True))
    }
    expected = vector["expected"]["edges"]
    assert edges.keys() == {(edge["source"], edge["target"]) for edge in expected}
    for values in expected:
        edge = edges[values["source"], values["target"]]
        assert graph.success_rate_E[edge] == pytest.approx(values["success_rate"], abs=1e-9)
        for theirs, ours in EDGE_FIELDS.items():
            assert getattr(credit, ours)[edge] == pytest.approx(values[theirs], abs=1e-9), (values, ours)


def test_every_step_value_of_a_golden_group_is_reproduced(vector, from_vector):
    records = list(assign_credit(*from_vector(vector)).step_records())
    expected = vector["expected"]
    assert len(records) == len(expected["steps"])
    for record, values in zip(records, expected["steps"], strict=True):
        assert record["rollout_id"] == f"{values['trajectory']:02d}"
        assert record["episode_advantage"] == pytest.approx(
            expected["episode_advantage"][values["trajectory"]], abs=1e-9
        )
        for theirs, ours in STEP_FIELDS.items():
            assert record[ours] == pytest.approx(values[theirs], abs=1e-9), (values, ours)


@pytest.mark.parametrize("estimator", ["gigpo", "grpo"])
def test_the_baselines_of_a_golden_group_are_reproduced(vector, from_vector, estimator):
    credit = assign_credit(*from_vector(vector, estimator=estimator))
    np.testing.assert_allclose(credit.advantage_S, vector[f"expected_{estimator}"], **TOLERANCE)


def test_all_golden_groups_in_one_batch_keep_their_values(vectors, from_vector):
    """Groups of one batch do not touch each other."""
    for preset, stage in {(vector["preset"], vector["stage"]) for vector in vectors}:
        alike = [
            v for v in vectors if (v["preset"], v["stage"], v["success_threshold"]) == (preset, stage, 0.0)
        ]
        batch = []
        for vector in alike:
            trajectories, config = from_vector(vector)
            batch += [item.model_copy(update={"task_id": vector["name"]}) for item in trajectories]
        credit = assign_credit(batch, config)
        expected = np.concatenate([[step["advantage"] for step in v["expected"]["steps"]] for v in alike])
        np.testing.assert_allclose(credit.advantage_S, expected, **TOLERANCE)
