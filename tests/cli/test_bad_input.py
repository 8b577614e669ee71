from __future__ import annotations

import pytest


def refused(done) -> str:
    """The one line on standard error of a refusal."""
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


def test_a_missing_file_is_named(milegpo):
    assert "absent.jsonl: no such file" in refused(milegpo("credit", "absent.jsonl", check=False))


def test_no_rewards_at_all_is_refused_with_the_option_to_use(milegpo, write_lines, rollouts):
    unknown = [{**rollout, "reward": None} for rollout in rollouts]
    line = refused(milegpo("credit", write_lines("t.jsonl", unknown), check=False))
    assert "--rewards" in line


def test_a_malformed_line_is_named_and_the_others_are_read(milegpo, write_lines, rollouts):
    done = milegpo("credit", write_lines("t.jsonl", [rollouts[0], "{broken", rollouts[1]]))
    assert "t.jsonl:2" in done.stdout
    assert "not valid JSON" in done.stdout


def test_a_line_that_breaks_the_contract_names_the_field_and_the_value(milegpo, write_lines, rollouts):
    done = milegpo(
        "credit", write_lines("t.jsonl", [*rollouts, {**rollouts[0], "rollout_id": "r9", "reward": "x"}])
    )
    assert "t.jsonl:3" in done.stdout
    assert "reward" in done.stdout
    assert "'x'" in done.stdout


def test_two_trajectories_with_the_same_ids_are_refused(milegpo, write_lines, rollouts):
    assert "r1" in refused(milegpo("credit", write_lines("t.jsonl", [*rollouts, rollouts[0]]), check=False))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--preset", "chess"), "preset must be one of"),
        (("--estimator", "ppo"), "estimator"),
        (("--stage", "all"), "stage"),
        (("--config", "absent.yaml"), "absent.yaml: no such file"),
    ],
)
def test_a_bad_option_names_the_rule(milegpo, write_lines, rollouts, options, expected):
    assert expected in refused(milegpo("credit", write_lines("t.jsonl", rollouts), *options, check=False))


def test_an_unknown_setting_in_a_config_file_is_refused(milegpo, write_lines, rollouts, tmp_path):
    (tmp_path / "c.yaml").write_text("gamma: 0.9\n", encoding="utf-8")
    line = refused(milegpo("credit", write_lines("t.jsonl", rollouts), "--config", "c.yaml", check=False))
    assert "gamma" in line


def test_an_output_folder_that_does_not_exist_is_named(milegpo, write_lines, rollouts):
    source = write_lines("t.jsonl", rollouts)
    assert "nowhere: no such folder" in refused(
        milegpo("credit", source, "-o", "nowhere/c.jsonl", check=False)
    )


def test_an_empty_file_says_what_is_missing(milegpo, write_lines):
    assert "no spans and no trajectories" in refused(
        milegpo("trajectories", write_lines("e.jsonl", []), check=False)
    )


def test_a_run_directory_that_is_taken_is_refused(milegpo, write_lines, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "metrics.jsonl").write_text("{}\n", encoding="utf-8")
    assert "--resume" in refused(milegpo("quickstart", "--run-dir", "runs", check=False))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--agent", "absent.py:play"), "absent.py: no such file"),
        (("--agent", "agent"), "FILE.py:FUNCTION"),
        (("--agent", "a.py:play", "--reward", "a.py:absent"), "has no function 'absent'"),
        (("--agent", "a.py:play", "--backend", "cloud"), "--backend"),
    ],
)
def test_training_refuses_what_it_cannot_load(milegpo, write_lines, tmp_path, options, expected):
    (tmp_path / "a.py").write_text("def play(task):\n    return 1.0\n", encoding="utf-8")
    tasks = write_lines("tasks.jsonl", [{"task_id": "1"}])
    assert expected in refused(milegpo("train", "--tasks", tasks, *options, check=False))
