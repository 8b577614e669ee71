"""The whole way with Ray on this machine."""

from __future__ import annotations

import json
import shutil

import pytest

from milegpo_plugin import CreditConfig, assign_credit
from milegpo_plugin.agl.offline import credit_files
from milegpo_plugin.errors import ConfigError, CreditError
from milegpo_plugin.files import read_input

PARTS = 5


@pytest.fixture(scope="module")
def cluster():
    """Ray on this machine, with two processors."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="warning")
    yield
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_ray_gives_the_numbers_of_one_process(offline, write, out):
    rollouts = offline.make(60)
    paths, config = write(rollouts, files=7), CreditConfig(filter_groups="outcome")
    with paths[3].open("a", encoding="utf-8") as stream:
        stream.write("not json\n")
    result = credit_files([path.absolute() for path in paths], out, config, nodes=True, parts=PARTS)
    offline.assert_same(result, out, paths, config)
    assert len(list(out.glob("credit-*.jsonl"))) == result.parts == PARTS
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["metrics"] == result.metrics
    assert len((out / "skipped.jsonl").read_text(encoding="utf-8").splitlines()) == summary["skipped"] > 1
    with pytest.raises(ConfigError, match="must be empty"):
        credit_files(paths, out)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_ray_writes_parquet_with_the_same_numbers(offline, write, out):
    from pyarrow import parquet

    paths = write(offline.make(18))
    credit_files(paths, out, format="parquet", nodes=True, parts=2)
    credit = assign_credit(read_input(paths).trajectories)
    for kind, records in (("credit", credit.step_records()), ("nodes", credit.node_records())):
        rows = [row for path in sorted(out.glob(f"{kind}-*")) for row in parquet.read_table(path).to_pylist()]
        assert sorted(rows, key=lambda row: row["task_id"]) == list(records)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_ray_refuses_a_batch_without_outcomes_and_leaves_no_parts(offline, write, out):
    paths = write([{**rollout, "reward": None} for rollout in offline.make(2)])
    with pytest.raises(CreditError, match="no outcomes"):
        credit_files(paths, out)
    assert list(out.iterdir()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_folder_that_cannot_be_written_is_one_line(offline, write, out):
    def vandal(step):
        shutil.rmtree(out, ignore_errors=True)
        return step.observation[0]["content"]

    config = CreditConfig.load({"states": {"function": vandal}})
    with pytest.raises(CreditError, match=r"^Ray gave up: InputNotFoundError: .*no such folder") as refused:
        credit_files(write(offline.make(6)), out, config)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_the_command_prints_what_one_process_prints(offline, write, tmp_path):
    paths = write(offline.make(18))
    here = offline.run(*paths, "-o", tmp_path / "credit.jsonl")
    there = offline.run(*paths, "-o", tmp_path / "parts", "--engine", "ray")
    assert there.returncode == 0, there.stderr
    assert (tmp_path / "parts" / "credit-00000.jsonl").read_bytes() == (
        tmp_path / "credit.jsonl"
    ).read_bytes()
    figures = [line for line in here.stdout.splitlines() if not line.startswith(("room", "wrote", "task"))]
    for line in figures[:20]:
        assert line in there.stdout
    assert "no reward" in there.stdout
