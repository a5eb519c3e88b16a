"""Gathering: sums, bounded samples with their largest value, a bounded number of series, only names of the table."""

from itertools import pairwise

import pytest

from stepwell_server.common import metric_names as names
from stepwell_server.common.metrics import MAX_SERIES, OTHER, Gathered, Sample, Series


def test_counts_are_sums_and_measurements_stay_apart() -> None:
    gathered = Gathered()
    for code in ("OK", "OK", "NOT_FOUND"):
        gathered.count(names.REQUESTS, operation="GetResult", code=code)
    gathered.count(names.FAILED_RECORDS, 7)
    gathered.record(names.TIMER_LAG, 12.5)
    gathered.record(names.TIMER_LAG, 3.0)
    assert gathered.take() == [
        Series(names.REQUESTS, {"operation": "GetResult", "code": "OK"}, (2.0,)),
        Series(names.REQUESTS, {"operation": "GetResult", "code": "NOT_FOUND"}, (1.0,)),
        Series(names.FAILED_RECORDS, {}, (7.0,)),
        Series(names.TIMER_LAG, {}, (12.5, 3.0)),
    ]
    assert gathered.take() == []


def test_what_should_not_wait_is_known_until_it_is_taken() -> None:
    gathered = Gathered()
    gathered.count(names.THROTTLES, service="dynamodb")
    assert not gathered.pressing
    gathered.count(names.NON_DETERMINISM)
    assert gathered.pressing
    gathered.take()
    assert not gathered.pressing


@pytest.mark.parametrize("seen", [1, 999, 1_000, 1_001, 123_456])
def test_a_sample_is_bounded_spread_evenly_and_has_the_largest(seen: int) -> None:
    sample = Sample()
    for value in range(seen):
        sample.add(float(value))
    values = sample.values()
    assert len(values) <= 1_001 and len(values) >= min(seen, 500)
    assert max(values) == seen - 1 and values[0] == 0
    steps = {after - before for before, after in pairwise(values[:-1])}
    assert len(steps) <= 1, "every n-th, in order"


def test_few_measurements_are_all_kept() -> None:
    sample = Sample()
    for value in (3.0, 1.0, 2.0, 3.0):
        sample.add(value)
    assert sample.values() == (3.0, 1.0, 2.0, 3.0)


def test_dimensions_of_whatever_values_stay_bounded() -> None:
    gathered = Gathered()
    for number in range(3 * MAX_SERIES):
        gathered.count(names.THROTTLES, service=f"service {number}")
    told = gathered.take()
    assert len(told) == MAX_SERIES + 1
    assert told[-1] == Series(names.THROTTLES, {"service": OTHER}, (2.0 * MAX_SERIES,))


def test_only_metrics_and_dimensions_of_the_table() -> None:
    gathered = Gathered()
    with pytest.raises(KeyError, match="metric_names"):
        gathered.count("made_up")
    with pytest.raises(ValueError, match="dimensions"):
        gathered.count(names.STUCK, workflow_id="order-1")
    with pytest.raises(KeyError, match="service"):
        gathered.count(names.THROTTLES, workflow_id="order-1")
