"""Volatile text: each kind has its switch, and leaves everything else alone."""

import pytest

from milegpo_plugin.config import StateConfig
from milegpo_plugin.states import state_keys
from milegpo_plugin.types import Step, Trajectory

KINDS = ("numbers", "uuids", "timestamps", "hex", "paths", "urls", "json_keys")


def key(text, *masks):
    step = Step(observation=[{"role": "tool", "content": text}])
    return state_keys(
        [Trajectory(task_id="t", rollout_id="r", steps=[step])], StateConfig(masks=masks)
    ).steps[0][0]


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("numbers", "took 12 ms, 3.5 left", "took 7 ms, -1,000.25 left"),
        ("numbers", "x=1e-5", "x=22"),
        ("numbers", "12ms", "9ms"),
        ("uuids", "job 123e4567-e89b-12d3-a456-426614174000", "job 00000000-E89B-12D3-A456-426614174fff"),
        ("timestamps", "at 2024-05-01T10:32:11.123Z", "at 2025-06-02 01:02:03"),
        ("timestamps", "on 2024-05-01", "on 2023/12/31"),
        ("timestamps", "now 10:32", "now 9:05:33 PM"),
        ("timestamps", "Date: Mon, 01 May 2024 10:00:00 GMT", "Date: Tue, 2 June 2025 11:30:01 GMT"),
        ("timestamps", "since 1714557131", "since 1714557131.25"),
        ("timestamps", "since 1714557131000", "since 1614557131999"),
        ("hex", "object at 0x7f3a", "object at 0xDEADBEEF"),
        ("hex", "commit 9fceb02d", "commit 0a1b2c3d4e5f60718293"),
        ("paths", "saved /tmp/run7/out.txt now", "saved ~/x.txt now"),
        ("paths", "in ./a/b", "in ../c"),
        ("paths", r"in C:\Users\a", r"in D:\x"),
        ("urls", "see https://a.example/x?y=1.", "see http://b.example."),
        ("json_keys", '{"a": 1, "b": {"d": [1, 2], "c": null}}', '{"b":{"c":null,"d":[1,2]},"a":1}'),
    ],
)
def test_a_mask_merges_its_own_kind_and_only_when_it_is_on(kind, first, second):
    assert key(first, kind) == key(second, kind)
    assert key(first) != key(second)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", ["You are in cabinet1, and/or the hall.", "B09Q5ZHRVM", "deadline facade", "{oops"]
)
def test_a_mask_leaves_ordinary_words_alone(kind, text):
    assert key(text, kind) == text


def test_json_lists_keep_their_order():
    assert key("[1, 2]", "json_keys") != key("[2, 1]", "json_keys")


def test_all_masks_together_do_not_depend_on_the_order_of_their_names():
    text = "GET https://a/1 at 2024-05-01T10:32:11Z id 123e4567-e89b-12d3-a456-426614174000 in /tmp/x/y took 12 of 0xff"
    masked = key(text, *KINDS)
    assert masked == key(text, *reversed(KINDS))
    assert masked == "GET <url> at <time> id <uuid> in <path> took <number> of <hex>"


def test_masked_text_is_stable_under_masking():
    masked = key("a 1 /tmp/x/y 0xff http://a/b 10:30", *KINDS)
    assert key(masked, *KINDS) == masked
