import time

import pytest


@pytest.fixture
def benchmark_seconds():
    """The least processor time of a few calls."""

    def measure(call, repeats=3):
        times = []
        for _ in range(repeats):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
        return min(times)

    return measure
