"""Token buckets: what passes, when again, and who passes before whom."""

import pytest

from stepwell_server.namespaces.buckets import Bucket, PriorityBuckets


def test_a_full_bucket_holds_a_burst_and_fills_at_its_rate() -> None:
    bucket = Bucket(10.0, now=5.0, seconds=2.0)
    for _ in range(20):
        assert bucket.wait(5.0) == 0.0
        bucket.pay()
    assert bucket.wait(5.0) == pytest.approx(0.1)
    assert bucket.wait(5.05) == pytest.approx(0.05)
    assert bucket.wait(5.1) == 0.0
    bucket.pay()
    assert bucket.wait(5.1) > 0
    assert bucket.wait(4.0) > 0, "a clock that goes back fills nothing"
    assert bucket.wait(1_000.0, 20) == 0.0 and bucket.tokens == 20


def test_more_than_fits_in_passes_when_it_is_full() -> None:
    bucket = Bucket(10.0, now=0.0, seconds=1.0)
    assert bucket.wait(0.0, 50) == 0.0
    bucket.pay(50)
    assert bucket.wait(0.0, 50) == pytest.approx(1.0)


def test_what_is_owed_is_paid_by_time() -> None:
    bucket = Bucket(10.0, now=0.0, seconds=1.0)
    bucket.owe(30)
    assert bucket.wait(0.0) == pytest.approx(2.1)
    assert bucket.wait(2.1) == 0.0


def test_a_slow_rate_passes_one_at_first() -> None:
    bucket = Bucket(0.1, now=0.0, seconds=2.0)
    assert bucket.wait(0.0) == 0.0
    bucket.pay()
    assert bucket.wait(0.0) == pytest.approx(10.0)


def test_a_flood_of_what_can_wait_keeps_nothing_more_important_from_passing() -> None:
    buckets = PriorityBuckets(10.0, 0.0, seconds=2.0, priorities=6)
    assert [buckets.take(4, 0.0) for _ in range(20)] == [0.0] * 20
    assert buckets.take(4, 0.0) > 0 and buckets.take(5, 0.0) > 0
    assert [buckets.take(1, 0.0) for _ in range(20)] == [0.0] * 20
    assert buckets.take(1, 0.0) > 0 and buckets.take(0, 0.0) == 0.0


def test_what_is_important_leaves_the_rest_what_it_has_not_used() -> None:
    buckets = PriorityBuckets(10.0, 0.0, seconds=2.0, priorities=6)
    for _ in range(15):
        assert buckets.take(1, 0.0) == 0.0
    assert [buckets.take(4, 0.0) == 0.0 for _ in range(7)] == [True] * 5 + [False] * 2
    assert buckets.take(4, 0.1) == 0.0, "each level fills at the whole rate"


def test_a_sustained_load_of_all_priorities_gets_the_rate_together() -> None:
    buckets = PriorityBuckets(10.0, 0.0, seconds=2.0, priorities=6)
    passed = dict.fromkeys((1, 4), 0)
    for step in range(10_000):
        now = step / 100  # 100 a second of each, ten times the rate, for 100 s
        for priority in (1, 4):
            passed[priority] += buckets.take(priority, now) == 0.0
    assert passed[1] == pytest.approx(1_000, abs=30) and passed[4] <= 30
