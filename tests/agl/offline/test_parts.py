"""Credit in parts: the numbers of one process, whatever file or part a rollout is in."""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from milegpo_plugin import CreditConfig, Trajectory, assign_credit
from milegpo_plugin.agl.offline import credit_files
from milegpo_plugin.agl.offline.parts import PartWriter
from milegpo_plugin.agl.offline.summary import OfflineCredit, Tally, load_account
from milegpo_plugin.agl.offline.units import ACCOUNT, UnitReader, decode, encode, plan_units
from milegpo_plugin.errors import ConfigError, CreditError, MissingDependencyError, TraceError
from milegpo_plugin.files import read_input
from milegpo_plugin.trajectories import ReconstructOptions
from milegpo_plugin.types import Step

PARTS = 5


def in_parts(paths, folder, config=None, options=None, parts=PARTS, whole_traces=False) -> OfflineCredit:
    """What the pipeline does, with a dict in the place of the shuffle."""
    config, options = config or CreditConfig(), options or ReconstructOptions()
    reader, writer = UnitReader(config, options, parts), PartWriter(folder, config, "jsonl", True)
    tally, shuffled = Tally(), defaultdict(list)
    for unit in plan_units(paths, (), whole_traces=whole_traces):
        for row in reader.rows(unit):
            shuffled[row["part"]].append(row["rollout"])
    for text in shuffled.pop(ACCOUNT):
        tally.add_unit(load_account(text))
    for number, lines in shuffled.items():
        account = writer.write(number, [decode(line) for line in lines])
        tally.add_part(vars_of(account))
    return tally.summarize(folder, paths, options.rewards)


def vars_of(account):
    return {name: getattr(account, name) for name in account.__slots__}


CONFIGS = {
    "strict": {},
    "webshop": {"norm": "mean", "mix_weight": 1.0, "support_threshold": 0.5, "unsupported_factor": 0.5},
    "plangpo": {"estimator": "plangpo"},
    "gigpo": {"estimator": "gigpo"},
    "hgpo": {"estimator": "hgpo"},
    "grpo": {"estimator": "grpo"},
    "filter by outcome": {"filter_groups": "outcome"},
    "filter by credit": {"filter_groups": "credit"},
    "failures count": {"on_failure": "zero"},
    "failures stay": {"on_failure": "keep"},
    "similar texts": {"states": {"similarity": 0.9}},
    "pattern": {"states": {"pattern": "room (?P<state>[0-2])"}},
    "histories": {"states": {"history": 2}, "reliability": "lower_bound", "require_success": True},
}


@pytest.mark.parametrize("settings", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("parts", [PARTS, 1000])
def test_parts_give_the_numbers_of_one_process(offline, write, out, settings, parts):
    paths, config = write(offline.make(18)), CreditConfig.load(settings)
    result = in_parts(paths, out, config, parts=parts)
    offline.assert_same(result, out, paths, config)


def test_filtered_groups_are_those_of_the_whole_batch(offline, write, out):
    """A part of groups without signal keeps all of them by itself; the batch keeps none."""
    alike = [rollout for rollout in offline.make(40) if int(rollout["task_id"].split()[1]) % 6 == 0]
    paths, config = write(alike), CreditConfig(filter_groups="outcome")
    assert not in_parts(paths, out, config).metrics.get("skipped/group without signal")
    others = [{**rollout, "task_id": f"other {rollout['task_id']}"} for rollout in offline.make(6, seed=3)]
    paths = write([*alike, *others])
    result = in_parts(paths, out, config)
    assert result.metrics["skipped/group without signal"] >= len(alike)
    offline.assert_same(result, out, paths, config)


def test_a_pattern_must_fit_a_text_of_the_batch_not_of_every_part(offline, write, out):
    rollouts = offline.make(18)
    rollouts[0]["steps"][0]["observation"][0]["content"] = "hall 7"
    paths = write(rollouts)
    fits = CreditConfig.load({"states": {"pattern": "hall (?P<state>.)"}})
    offline.assert_same(in_parts(paths, out, fits, parts=1000), out, paths, fits)
    with pytest.raises(ConfigError, match=r"states\.pattern: 'cellar' matches none"):
        in_parts(paths, out, CreditConfig.load({"states": {"pattern": "cellar"}}))


def test_broken_lines_and_files_are_reported_and_the_rest_is_credited(offline, write, out, tmp_path):
    rollouts = offline.make(18)
    paths = write(rollouts)
    with paths[1].open("a", encoding="utf-8") as stream:
        stream.write('{"task_id": \n{"task_id": "t", "rollout_id": 7, "steps": []}\n')
    broken = tmp_path / "broken.jsonl.gz"
    whole = gzip.compress("".join(json.dumps(line) + "\n" for line in rollouts[:1] * 500).encode())
    broken.write_bytes(whole[: len(whole) // 2])
    result = in_parts([*paths, broken], out)
    reasons = {
        item.id.rpartition("/")[2]: item.reason for item in result.skipped if item.kind in ("line", "file")
    }
    assert "EOFError" in reasons.pop("broken.jsonl.gz")
    (bad_json, reason), (bad_fields, cause) = sorted(reasons.items())
    assert bad_json.startswith("rollouts1.jsonl:")
    assert "not valid JSON" in reason
    assert bad_fields.startswith("rollouts1.jsonl:")
    assert "rollout_id" in cause
    untouched = {rollout["task_id"] for rollout in rollouts} - {rollouts[0]["task_id"]}
    assert {line["task_id"] for line in offline.lines(out, "credit")} >= untouched


def test_the_same_rollout_in_two_files_leaves_out_its_task_for_the_reason_of_one_process(
    offline, write, out, tmp_path
):
    rollouts = offline.make(18)
    paths = write(rollouts)
    copy = tmp_path / "copy.jsonl"
    copy.write_text(json.dumps(rollouts[0]) + "\n", encoding="utf-8")
    with pytest.raises(CreditError) as refused:
        assign_credit(read_input([*paths, copy]).trajectories)
    result = in_parts([*paths, copy], out)
    assert [(s.id, s.reason) for s in result.skipped if s.kind == "task"] == [
        (rollouts[0]["task_id"], str(refused.value))
    ]
    others = [r for r in read_input(paths).trajectories if r.task_id != rollouts[0]["task_id"]]
    assert offline.lines(out, "credit") == list(assign_credit(others).step_records())


def test_a_state_function_that_fails_takes_down_its_task_only(offline, write, out):
    def fragile(step: Step) -> str:
        if step.observation[0]["content"] == "cursed":
            raise KeyError("cursed")
        return step.observation[0]["content"]

    rollouts = offline.make(18)
    rollouts[5]["steps"][0]["observation"][0]["content"] = "cursed"
    result = in_parts(write(rollouts), out, CreditConfig.load({"states": {"function": fragile}}), parts=2)
    (left_out,) = (item for item in result.skipped if item.kind == "task")
    assert left_out.id == rollouts[5]["task_id"]
    assert "KeyError" in left_out.reason
    assert len({line["task_id"] for line in offline.lines(out, "credit")}) == 17


def test_rewards_of_a_file_count_and_those_of_nobody_are_noted_once(offline, write, out):
    paths = write(offline.make(18))
    options = ReconstructOptions(rewards={"r0": 1.0, "r1": 0.0, "nobody": 1.0})
    result = in_parts(paths, out, options=options)
    assert result.notes == ["1 rewards name rollouts that are not in the trajectories"]
    offline.assert_same(result, out, paths, options=options)


def test_a_batch_without_outcomes_or_without_rollouts_is_refused(offline, write, out, tmp_path):
    silent = [{**rollout, "reward": None, "flags": []} for rollout in offline.make(6)]
    for rollout in silent:
        for step in rollout["steps"]:
            step.pop("reward", None)
    with pytest.raises(CreditError, match="no outcomes: none of the"):
        in_parts(write(silent), out)
    empty = tmp_path / "empty.jsonl"
    empty.write_text("{", encoding="utf-8")
    with pytest.raises(TraceError, match="empty"):
        in_parts([empty], out)


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), 0.1 + 0.2, None])
def test_a_rollout_comes_out_of_the_shuffle_as_it_went_in(reward):
    given = Trajectory(task_id="é", rollout_id="r", reward=reward, steps=[Step(reward=reward)])
    assert repr(decode(encode(given, None))) == repr(given)


def coin_traces(tmp_path: Path, *, whole: bool) -> list[Path]:
    """Real spans of 16 rollouts, dealt out to two files: rollout by rollout, or span by span."""
    source = Path(__file__).parents[3] / "examples/traces/coin.agl_spans.jsonl.gz"
    lines = gzip.decompress(source.read_bytes()).splitlines(keepends=True)
    names = sorted({json.loads(line)["rollout_id"] for line in lines})
    places = [
        names.index(json.loads(line)["rollout_id"]) if whole else place for place, line in enumerate(lines)
    ]
    paths = [tmp_path / f"half{number}.agl_spans.jsonl" for number in range(2)]
    for number, path in enumerate(paths):
        path.write_bytes(
            b"".join(line for place, line in zip(places, lines, strict=True) if place % 2 == number)
        )
    return paths


def test_spans_of_one_rollout_in_two_trace_files_are_brought_together(offline, out, tmp_path):
    paths = coin_traces(tmp_path, whole=False)
    offline.assert_same(in_parts(paths, out), out, paths)


def test_whole_traces_are_read_apart_and_refused_when_a_rollout_is_in_two_of_them(offline, out, tmp_path):
    halves = coin_traces(tmp_path, whole=False)
    with pytest.raises(ConfigError, match=r"--whole-traces: .* are in two files, the first is '"):
        in_parts(halves, out, whole_traces=True)
    whole = coin_traces(tmp_path, whole=True)
    offline.assert_same(in_parts(whole, out, whole_traces=True), out, whole)


def test_a_missing_ray_is_named_in_one_line(offline, monkeypatch, write, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'milegpo-plugin\[ray\]'"):
        credit_files(write(offline.make(2)), tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "spark"], "--engine: must be process or ray, got 'spark'"),
        (["--engine", "ray"], "--engine ray: needs -o FOLDER"),
    ],
)
def test_a_wrong_use_is_one_line_and_exit_code_2(offline, write, options, message):
    done = offline.run(write(offline.make(2))[1], *options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
