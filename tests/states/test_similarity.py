"""Similar texts as one state."""

import random

import pytest

from milegpo_plugin.config import StateConfig
from milegpo_plugin.states import state_keys
from milegpo_plugin.states.clusters import merge_similar
from milegpo_plugin.types import Step, Trajectory


def trajectory(*texts, task="t", **end):
    steps = [Step(observation=[{"role": "tool", "content": text}]) for text in texts]
    return Trajectory(task_id=task, rollout_id=f"{task}-{texts}", steps=steps, **end)


def test_texts_that_differ_a_little_take_the_name_of_the_commonest():
    common, rare, other = "You are in the long dark hall.", "You are in the long dark hall!", "A kitchen."
    keys = state_keys([trajectory(rare, common, common, other)], StateConfig(similarity=0.9))
    assert keys.steps == [[common, common, common, other]]


def test_without_the_option_they_stay_apart():
    assert len(set(state_keys([trajectory("the hall.", "the hall!")], StateConfig()).steps[0])) == 2


def test_tasks_never_share_a_cluster():
    batch = [
        trajectory("the long hall 1", "the long hall 1", task="a"),
        trajectory("the long hall 2", task="b"),
    ]
    keys = state_keys(batch, StateConfig(similarity=0.8))
    assert keys.steps[1] == ["the long hall 2"]


def test_a_given_state_leads_and_is_never_renamed():
    given_steps = [Step(state="the long hall A"), Step(state="the long hall B")]
    one = Trajectory(task_id="t", rollout_id="1", steps=given_steps, final_observation="the long hall  B!")
    keys = state_keys([one], StateConfig(similarity=0.8))
    assert keys.steps == [["the long hall A", "the long hall B"]]
    assert keys.final == ["the long hall B"]


def test_small_changes_do_not_chain():
    """a-b and b-c are similar, a-c is not: c does not follow b into a's state."""
    a, b, c = "a" * 10, "a" * 8 + "bb", "a" * 6 + "bbbb"
    assert merge_similar({a: 3, b: 2, c: 1}, (), 0.8) == {a: a, b: a, c: c}


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.9, 1.0])
def test_the_length_filter_never_loses_a_neighbour(threshold):
    """Against a search through all leaders, with the similarity from the definition."""
    rng = random.Random(1)
    texts = ["".join(rng.choices("ab", k=rng.randint(0, 14))) for _ in range(120)]
    counts = {text: texts.count(text) for text in texts}
    merged = merge_similar(counts, (), threshold)
    leaders = {text for text, leader in merged.items() if text == leader}
    for text, leader in merged.items():
        assert similarity(text, leader) >= threshold - 1e-9
        if text in leaders:
            earlier = [x for x in leaders if (-counts[x], x) < (-counts[text], text)]
            assert all(similarity(text, x) < threshold - 1e-9 for x in earlier)


def similarity(a, b):
    """1 - indel distance / total length, by the textbook table of longest common subsequences."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return 2 * table[-1][-1] / (len(a) + len(b)) if a or b else 1.0


def test_texts_of_many_lengths_are_merged_in_far_less_than_quadratic_time(benchmark_seconds):
    rng = random.Random(2)
    counts = {"".join(rng.choices("abcdefgh ", k=rng.randint(20, 4000))): 1 for _ in range(1500)}
    assert benchmark_seconds(lambda: merge_similar(counts, (), 0.97), repeats=1) < 8
