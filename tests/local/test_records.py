from __future__ import annotations

import numpy as np

from milegpo_plugin.local.records import SamplingRecord, SamplingRecords


def record(*masks: int | None) -> SamplingRecord:
    packed = tuple(None if mask is None else np.array([mask, 0], dtype=np.int32) for mask in masks)
    return SamplingRecord(packed, np.zeros(len(masks), dtype=np.float32), 1.0, 0)


def test_a_record_is_found_by_prompt_and_response() -> None:
    records = SamplingRecords()
    records.add([1, 2], [3], record(None))
    assert records.find(np.array([1, 2]), (3,)) is not None
    assert records.find([1], [2, 3]) is None
    assert records.find([1, 2, 3], []) is None


def test_equal_masks_are_stored_once() -> None:
    records = SamplingRecords()
    records.add([1], [2, 3], record(5, 5))
    records.add([1], [4], record(5))
    one, two = records.find([1], [2, 3]), records.find([1], [4])
    assert one is not None
    assert two is not None
    assert one.masks_T[0] is one.masks_T[1] is two.masks_T[0]


def test_a_position_is_free_unless_one_token_is_allowed() -> None:
    assert record(None, 0b100, 0b101, -(2**31)).free_T().tolist() == [True, False, True, False]


def test_the_oldest_records_make_room_and_are_counted() -> None:
    records = SamplingRecords(capacity=2)
    for token in range(5):
        records.add([token], [1], record(None))
    assert len(records) == 2
    assert records.evicted == 3
    assert records.find([4], [1]) is not None
    assert records.find([0], [1]) is None


def test_clearing_forgets_records_and_starts_the_streams_again() -> None:
    records = SamplingRecords()
    records.add([1], [2], record(None))
    assert [records.ask([1]), records.ask([1]), records.ask([2])] == [0, 1, 0]
    records.clear()
    assert len(records) == 0
    assert records.ask([1]) == 0
