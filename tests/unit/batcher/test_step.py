"""How a batch goes on: bursts, what waits, rate, ends. Every path is walked with any outcome of each workflow."""

from datetime import UTC, datetime, timedelta
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stepwell.api import limits
from stepwell.api.batches import BatchFailure, BatchTerminate
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import BatchOperationState as State

from stepwell_server.batcher import records, step
from stepwell_server.batcher.records import Done, Job, Page, Target

T0 = datetime(2026, 11, 30, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def job(**more: object) -> Job:
    values: dict[str, object] = {
        "namespace": "default",
        "id": "job",
        "operation": BatchTerminate(),
        "rate": 50.0,
        "listed": 120,
        "started": T0,
        "next_at": T0,
        "begun": True,
    }
    return Job(**(values | more))  # type: ignore[arg-type]


def targets(first: int, count: int) -> tuple[Target, ...]:
    return tuple(Target(f"w-{number}", f"r-{number}") for number in range(first, first + count))


def page(first: int, count: int, total: int = 120) -> Page:
    return Page(targets=targets(first, count), exhausted=first + count >= total)


def failed(target: Target, *, later: bool = False) -> Done:
    failure = BatchFailure(execution=target.execution, code="X", message="because " * 100)
    return Done(target=target, failure=failure, later=later)


def test_a_burst_is_what_a_second_has_room_for_and_is_somebodys_for_a_while():
    claimed = step.claimed(job(), page(0, 50), targets(0, 50), T0)
    assert claimed.burst is not None and claimed.position == 50 and not claimed.burst.repeated
    assert step.wakes_at(claimed) == T0 + SECOND + step.LEASE
    last = T0 + SECOND * 0.98
    finished = step.finished(claimed, [Done(target=one) for one in claimed.burst.targets], last, last)
    assert (finished.done, finished.failed, finished.burst) == (50, 0, None)
    assert step.wakes_at(finished) == T0 + SECOND  # its last has its time as well


@pytest.mark.parametrize(("rate", "size"), [(50.0, 50), (7.5, 7), (1.0, 1), (0.1, 1)])
def test_lower_rates_make_smaller_bursts_that_lie_further_apart(rate: float, size: int):
    slow = job(rate=rate)
    assert step.burst_size(slow) == size
    claimed = step.claimed(slow, page(0, size), targets(0, size), T0)
    finished = step.finished(claimed, [Done(target=one) for one in targets(0, size)], T0, T0)
    assert finished.next_at == T0 + timedelta(seconds=1 / rate)


def test_what_one_that_died_has_left_is_done_again_and_known_to_be_a_repeat():
    claimed = step.claimed(job(), page(0, 50), targets(0, 50), T0)
    assert not step.needs_page(claimed) and step.upcoming(claimed, None) == targets(0, 50)
    again = step.claimed(claimed, None, targets(0, 50), T0 + timedelta(minutes=1))
    assert again.burst is not None and again.burst.repeated and again.position == 50 and again.found == 50


def test_what_cannot_be_done_for_the_moment_comes_first_next_time_with_growing_pauses():
    now, it = T0, step.claimed(job(), page(0, 2), targets(0, 2), T0)
    pauses = []
    for _ in range(step.MAX_TRIES - 1):
        assert it.burst is not None
        it = step.finished(it, [failed(one, later=True) for one in it.burst.targets], now, now)
        assert len(it.again) == 2 and not step.needs_page(it)
        pauses.append((it.next_at - now).total_seconds())
        now = it.next_at
        it = step.claimed(it, None, it.again, now)
    assert pauses[:7] == [1, 2, 4, 8, 16, 30, 30] and set(pauses[7:]) == {30}
    assert it.burst is not None
    it = step.finished(it, [failed(one, later=True) for one in it.burst.targets], now, now)
    assert (it.failed, it.again) == (2, ()) and it.failing == 0


def test_failures_are_reported_up_to_a_number_and_counted_all():
    it = job(listed=120, exhausted=False)
    for first in (0, 50, 100):
        count = min(50, 120 - first)
        it = step.claimed(it, page(first, count), targets(first, count), T0)
        it = step.finished(it, [failed(one) for one in targets(first, count)], T0, T0)
    assert it.failed == 120 and len(it.failures) == limits.MAX_BATCH_FAILURES
    assert all(len(failure.message.encode()) <= 300 for failure in it.failures)
    assert it.state is State.COMPLETED and it.closed == T0 and step.wakes_at(it) == T0 + step.KEPT


def test_an_empty_page_is_gone_on_with_or_is_the_end():
    filtered = job(listed=0, query="x")
    more = step.claimed(filtered, Page(targets=(), page_token=b"t", exhausted=False), (), T0)
    assert more.closed is None and more.page_token == b"t" and more.next_at == T0
    assert step.claimed(more, Page(targets=(), exhausted=True), (), T0).state is State.COMPLETED


def test_one_that_is_stopped_takes_in_what_was_under_way():
    claimed = step.claimed(job(), page(0, 3), targets(0, 3), T0)
    stopped = step.closed(claimed, State.STOPPED, "stopped by me", T0)
    one, two, three = targets(0, 3)
    ended = step.finished(stopped, [Done(target=one), failed(two), failed(three, later=True)], T0, T0)
    assert (ended.done, ended.failed, ended.again, ended.state) == (1, 2, (), State.STOPPED)


def test_what_nobody_got_to_comes_first_next_time_and_not_behind_a_stop():
    one, two, three = targets(0, 3)
    claimed = step.claimed(job(), page(0, 3), (one, two, three), T0)
    outcomes = [Done(target=one), Done(target=two, left=True), Done(target=three, left=True)]
    finished = step.finished(claimed, outcomes, T0, T0)
    assert (finished.done, finished.failed, finished.again, finished.failing) == (1, 0, (two, three), 0)
    stopped = step.finished(step.closed(claimed, State.STOPPED, "", T0), outcomes, T0, T0)
    assert (stopped.done, stopped.failed, stopped.again) == (1, 0, ())


def test_a_start_that_does_not_come_to_its_end_is_looked_at():
    fresh = job(begun=False)
    assert step.wakes_at(fresh) == T0 + step.START_TAKES
    assert step.wakes_at(step.begun(fresh, T0 + SECOND)) == T0 + SECOND


@given(st.integers(1, 130), st.sampled_from([50.0, 9.0]), st.integers(0, 2**32))
def test_each_is_counted_once_whatever_comes_of_it_and_whoever_dies(total: int, rate: float, seed: int):
    chance = Random(seed)
    it, now, position = job(listed=total, rate=rate), T0, 0
    acted: dict[Target, int] = {}
    for _ in range(10_000):
        if it.closed is not None:
            break
        now = max(now, step.wakes_at(it))
        next_page = None
        if step.needs_page(it):
            count = min(step.burst_size(it), total - position)
            next_page = page(position, count, total)
            position += count
        it = step.claimed(it, next_page, step.upcoming(it, next_page), now)
        assert it.burst is not None
        if chance.random() < 0.2:
            continue  # died
        outcomes = []
        for target in it.burst.targets:
            kind = chance.choice(["done", "done", "failed", "later"])
            outcomes.append(Done(target=target) if kind == "done" else failed(target, later=kind == "later"))
            if kind != "later":
                key = msgspec.structs.replace(target, tries=0)
                acted[key] = acted.get(key, 0) + 1
        it = step.finished(it, outcomes, now, now)
        now += SECOND / 4
    assert it.closed is not None and it.done + it.failed == total
    assert all(count == 1 for count in acted.values())


def test_the_record_of_a_job_fits_whatever_fails():
    longest = "w" * 1_000
    burst = tuple(Target(longest, "r" * 36, 19) for _ in range(50))
    execution = WorkflowExecution(workflow_id=longest, run_id="r" * 36)
    failure = BatchFailure(execution=execution, code="FAILED_PRECONDITION", message="m" * 300)
    largest = job(
        burst=records.Burst(targets=burst, until=T0),
        failures=(failure,) * limits.MAX_BATCH_FAILURES,
        reason="r" * (limits.MAX_BATCH_BYTES - 1_000),
    )
    assert len(records.encode(largest)) < 380_000
    assert records.decode(records.encode(largest)) == largest
    part = tuple(Target(longest, "r" * 36) for _ in range(records.PART))
    assert len(records.encode_part(part)) < 380_000 and records.decode_part(records.encode_part(part)) == part


@pytest.mark.parametrize(
    ("more", "known"),
    [({}, True), ({"listed": 0}, False), ({"listed": 0, "exhausted": True}, True), ({"listed": 0, "closed": T0}, True)],
)
def test_what_was_found_so_far_is_told_from_all_that_there_is(more: dict[str, object], known: bool) -> None:
    assert records.info_of(job(**more)).all_found is known
