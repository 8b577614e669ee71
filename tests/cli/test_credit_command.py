from __future__ import annotations

import json

import pytest

STEP_KEYS = {
    "task_id", "rollout_id", "step", "state", "graph_return", "shaped_return", "delta_plus", "delta_minus",
    "graph_advantage", "shaped_advantage", "episode_advantage", "advantage",
}  # fmt: skip
NODE_KEYS = {
    "task_id", "state", "visits", "successes", "goal_distance", "milestone_score", "trap_score",
    "branch_evidence", "progress_evidence", "calibrated_score", "milestone_potential", "trap_potential", "kind",
}  # fmt: skip


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_credit_writes_one_line_a_step_with_the_fields_of_the_contract(
    milegpo, write_lines, rollouts, tmp_path
):
    milegpo("credit", write_lines("t.jsonl", rollouts), "-o", "credit.jsonl", "--nodes", "nodes.jsonl")
    steps, nodes = lines(tmp_path / "credit.jsonl"), lines(tmp_path / "nodes.jsonl")
    assert [(s["rollout_id"], s["step"]) for s in steps] == [("r1", 0), ("r1", 1), ("r2", 0), ("r2", 1)]
    assert all(set(step) == STEP_KEYS for step in steps)
    assert all(set(node) >= NODE_KEYS for node in nodes)
    assert {node["kind"] for node in nodes} <= {"milestone", "trap", "state", "goal", "end"}


def test_the_branch_that_won_gets_more_credit_than_the_one_that_lost(
    milegpo, write_lines, rollouts, tmp_path
):
    milegpo("credit", write_lines("t.jsonl", rollouts), "-o", "credit.jsonl")
    steps = {(s["rollout_id"], s["step"]): s for s in lines(tmp_path / "credit.jsonl")}
    assert steps["r1", 0]["advantage"] > 0 > steps["r2", 0]["advantage"]


def test_input_order_does_not_change_the_output(milegpo, write_lines, rollouts, tmp_path):
    milegpo("credit", write_lines("a.jsonl", rollouts), "-o", "a.out")
    milegpo("credit", write_lines("b.jsonl", rollouts[::-1]), "-o", "b.out")
    assert (tmp_path / "a.out").read_bytes() == (tmp_path / "b.out").read_bytes()


def test_json_on_standard_output_is_clean(milegpo, write_lines, rollouts):
    done = milegpo("credit", write_lines("t.jsonl", rollouts), "-o", "-")
    assert [json.loads(line)["step"] for line in done.stdout.splitlines()] == [0, 1, 0, 1]
    assert "coverage" in done.stderr


def test_undefined_fields_of_an_estimator_are_null(milegpo, write_lines, rollouts, tmp_path):
    milegpo("credit", write_lines("t.jsonl", rollouts), "--estimator", "grpo", "-o", "credit.jsonl")
    step = lines(tmp_path / "credit.jsonl")[0]
    assert step["graph_return"] is None
    assert step["advantage"] == step["episode_advantage"]


def test_options_win_over_the_file_and_the_file_over_the_preset(milegpo, write_lines, rollouts, tmp_path):
    config = tmp_path / "credit.yaml"
    config.write_text("preset: webshop\nstage: md\n", encoding="utf-8")
    source = write_lines("t.jsonl", rollouts)
    milegpo("credit", source, "--config", config, "-o", "md.jsonl")
    milegpo("credit", source, "--preset", "webshop", "--stage", "md", "-o", "same.jsonl")
    milegpo("credit", source, "--config", config, "--stage", "graph", "-o", "graph.jsonl")
    assert (tmp_path / "md.jsonl").read_bytes() == (tmp_path / "same.jsonl").read_bytes()
    assert lines(tmp_path / "graph.jsonl")[0]["delta_plus"] == 0


def test_rewards_come_from_a_file_when_the_trajectories_have_none(milegpo, write_lines, rollouts, tmp_path):
    unknown = [{**rollout, "reward": None} for rollout in rollouts]
    rewards = write_lines(
        "rewards.jsonl", [{"rollout_id": "r1", "reward": 1}, {"rollout_id": "r2", "reward": 0}]
    )
    milegpo("credit", write_lines("t.jsonl", unknown), "--rewards", rewards, "-o", "given.jsonl")
    milegpo("credit", write_lines("known.jsonl", rollouts), "-o", "known.out")
    assert (tmp_path / "given.jsonl").read_bytes() == (tmp_path / "known.out").read_bytes()


def test_a_rollout_without_reward_is_reported_and_its_credit_is_null(
    milegpo, write_lines, rollouts, tmp_path
):
    rollouts.append({**rollouts[0], "rollout_id": "r3", "reward": None})
    done = milegpo("credit", write_lines("t.jsonl", rollouts), "-o", "credit.jsonl")
    assert "no reward" in done.stdout
    unknown = [s for s in lines(tmp_path / "credit.jsonl") if s["rollout_id"] == "r3"]
    assert [s["advantage"] for s in unknown] == [None, None]


def test_a_group_of_one_gets_zero_and_a_warning(milegpo, write_lines, rollouts, tmp_path):
    done = milegpo("credit", write_lines("t.jsonl", rollouts[:1]), "-o", "credit.jsonl")
    assert [s["episode_advantage"] for s in lines(tmp_path / "credit.jsonl")] == [0, 0]
    assert "hold one rollout" in done.stdout


def test_milestones_are_printed_with_their_counts_and_interval(milegpo, write_lines, rollouts):
    done = milegpo("credit", write_lines("t.jsonl", rollouts))
    (line,) = (line.split() for line in done.stdout.splitlines() if line.startswith("study"))
    assert line[2:] == ["1", "1", "20.7%–100.0%", "t"]


def test_states_that_are_seldom_shared_bring_a_warning_that_names_the_option(milegpo, write_lines, rollouts):
    for number, rollout in enumerate(rollouts):
        rollout["steps"] += [{"state": f"only {number} was here"}]
    assert "states are seen by one rollout only" in milegpo("credit", write_lines("t.jsonl", rollouts)).stdout
    for number, rollout in enumerate(rollouts):
        rollout["steps"] = [{"state": f"{number} {position}"} for position in range(3)]
    done = milegpo("credit", write_lines("apart.jsonl", rollouts))
    assert "only 0% of the steps start in a state that two rollouts share" in done.stdout
    assert "states.masks" in done.stdout


def test_the_figures_tell_group_sizes_and_groups_without_signal(milegpo, write_lines, rollouts):
    same = [{**rollouts[0], "task_id": "u", "rollout_id": f"u{number}"} for number in range(3)]
    shown = dict(
        line.rsplit(maxsplit=1)
        for line in milegpo("credit", write_lines("t.jsonl", rollouts + same)).stdout.splitlines()
        if len(line.split()) > 1
    )
    assert (shown["smallest group"], shown["largest group"]) == ("2", "3")
    assert (shown["groups without signal"], shown["groups rescued"]) == ("1", "0")


@pytest.mark.parametrize("estimator", ["rloo", "plangpo"])
def test_estimator_and_group_filter_come_from_the_config_file(
    milegpo, write_lines, rollouts, tmp_path, estimator
):
    config = tmp_path / "credit.yaml"
    config.write_text(f"estimator: {estimator}\nfilter_groups: outcome\n", encoding="utf-8")
    same = [{**rollouts[0], "task_id": "u", "rollout_id": f"u{number}"} for number in range(2)]
    done = milegpo("credit", write_lines("t.jsonl", rollouts + same), "--config", config, "-o", "c.jsonl")
    assert "group without signal" in done.stdout
    assert len(lines(tmp_path / "c.jsonl")) == 8


def test_diagnose_prints_and_writes_the_figures(milegpo, write_lines, rollouts):
    done = milegpo("diagnose", write_lines("t.jsonl", rollouts), "-o", "-")
    figures = json.loads(done.stdout)
    assert figures["rollouts"] == 2
    assert figures["coverage"] == 0.5
    assert {"support", "evidence", "ambiguity", "tie_correction", "seconds"} <= figures.keys()
    for words in (
        "coverage",
        "ambiguity",
        "md ranks",
        "rcs ranks",
        "pcc ranks",
        "weak",
        "branch",
        "time: pcc",
    ):
        assert words in done.stderr
