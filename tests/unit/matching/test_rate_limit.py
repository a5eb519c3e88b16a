"""The rate limit of a task queue: how many go out in any stretch of time, and how the rate changes (TQ-08)."""

import asyncio

import pytest
from stepwell.api.enums import TaskQueueKind
from stepwell.api.requests import WorkerInfo

from stepwell_server.adapters.system import SystemClock
from stepwell_server.matching.rate_limit import RateLimit
from stepwell_server.matching.service import Matching, QueueName
from stepwell_server.matching.task_queue import Poll, TaskQueue

NAME = QueueName("default", "orders", TaskQueueKind.ACTIVITY)
ONE = WorkerInfo(identity="one", worker_key="key one")
TWO = WorkerInfo(identity="two", worker_key="key two")


def taken(limit: RateLimit, times: list[float]) -> int:
    return sum(limit.take(time) for time in times)


@pytest.mark.parametrize("rate", [0.1, 1.0, 2.5, 40.0])
def test_a_second_at_once_and_then_the_rate(rate: float) -> None:
    limit = RateLimit(rate, 0.0)
    burst = max(1, -(-rate // 1))
    assert taken(limit, [0.0] * 100) == burst
    seconds = 200
    times = [step / 50 for step in range(1, 50 * seconds + 1)]
    assert taken(limit, times) == pytest.approx(rate * seconds, abs=1.5)


def test_what_did_not_go_out_is_given_back_and_no_more_than_there_is_room() -> None:
    limit = RateLimit(1.0, 0.0)
    limit.give_back()
    assert taken(limit, [0.0, 0.0]) == 1
    limit.give_back()
    assert taken(limit, [0.0, 0.0]) == 1


def test_a_change_counts_from_now_on() -> None:
    limit = RateLimit(1.0, 0.0)
    assert taken(limit, [0.0, 0.0]) == 1
    limit.change(10.0, 0.0)
    assert limit.rate == 10.0 and limit.seconds_to_next(0.0) == pytest.approx(0.1)
    assert taken(limit, [0.05, 0.1, 0.2]) == 2
    limit.change(0.5, 10.0)
    assert taken(limit, [10.0, 10.0]) == 1
    assert limit.seconds_to_next(10.0) == pytest.approx(2.0)


async def test_a_new_hint_does_not_overtake_those_that_wait_for_the_limit() -> None:
    queue: TaskQueue[str] = TaskQueue()
    queue.set_limit(1.0, 0.0)
    for ref in ("a", "b"):
        queue.offer(ref, "", 0.0)
    assert queue.take("", 0.0) == "a" and queue.take("", 0.0) is None
    poll: Poll[str] = Poll("w", "w", asyncio.get_running_loop().create_future())
    queue.polls[poll] = None
    assert queue.seconds_to_drain(0.25) == pytest.approx(0.75)
    queue.offer("c", "", 1.0)
    assert poll.future.result() == "b"
    assert queue.seconds_to_drain(1.0) is None, "nobody waits any more"
    assert not queue.set_limit(1.0, 1.0) and queue.set_limit(2.0, 1.0)


@pytest.fixture
def matching() -> Matching:
    return Matching(SystemClock())


async def test_polls_wait_for_the_limit_and_are_served_in_time(matching: Matching) -> None:
    for ref in range(4):
        matching.offer(NAME, ref)
    assert await matching.poll(NAME, ONE, 0.0, 20.0) == 0
    assert matching.is_limited(NAME)
    assert matching.take_more(NAME, ONE, 100) == [1, 2, 3], "the tokens of a second are there at first"
    for ref in range(4, 100):
        matching.offer(NAME, ref)
    assert len(matching.take_more(NAME, ONE, 100)) == 16
    assert await matching.poll(NAME, ONE, 0.0) is None
    polls = [asyncio.ensure_future(matching.poll(NAME, worker, 5.0)) for worker in (ONE, TWO, ONE)]
    assert await asyncio.gather(*polls) == [20, 21, 22]


async def test_the_last_worker_that_says_a_limit_sets_it(matching: Matching) -> None:
    assert await matching.poll(NAME, ONE, 0.0, 0.001) is None
    matching.offer(NAME, "a")
    matching.offer(NAME, "b")
    assert await matching.poll(NAME, ONE, 0.0) == "a"
    waits = asyncio.ensure_future(matching.poll(NAME, ONE, 5.0))
    await asyncio.sleep(0)
    assert await matching.poll(NAME, TWO, 0.02) is None, "without one of its own it changes nothing"
    assert not waits.done()
    raises = asyncio.ensure_future(matching.poll(NAME, TWO, 0.0, 10.0))
    assert await waits == "b", "who waited before goes first, at the new rate"
    assert await raises is None


async def test_stale_hints_do_not_count(matching: Matching) -> None:
    for ref in ("stale", "good", "next"):
        matching.offer(NAME, ref)
    assert await matching.poll(NAME, ONE, 0.0, 0.001) == "stale"
    matching.not_gone_out(NAME)
    assert await matching.poll(NAME, ONE, 0.0) == "good"
    matching.put_back(NAME, "good")
    assert await matching.poll(NAME, ONE, 0.0) == "good"
    assert await matching.poll(NAME, ONE, 0.0) is None
    assert matching.backlog(NAME) == 1


async def test_other_queues_have_limits_of_their_own(matching: Matching) -> None:
    other = NAME._replace(kind=TaskQueueKind.WORKFLOW)
    await matching.poll(NAME, ONE, 0.0, 0.001)
    assert not matching.is_limited(other)
    matching.offer(other, "a")
    matching.offer(other, "b")
    assert [await matching.poll(other, ONE, 0.0) for _ in range(2)] == ["a", "b"]


async def test_stop_leaves_no_timer(matching: Matching) -> None:
    await matching.poll(NAME, ONE, 0.0, 0.001)
    matching.offer(NAME, "a")
    matching.offer(NAME, "b")
    await matching.poll(NAME, ONE, 0.0)
    waits = asyncio.ensure_future(matching.poll(NAME, ONE, 50.0))
    await asyncio.sleep(0)
    assert matching._draining
    matching.stop()
    assert await waits is None and not matching._draining
