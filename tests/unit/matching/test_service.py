"""Matching: long polls, delays, cancellation, and what describe sees."""

import asyncio
from datetime import timedelta

import pytest
from stepwell.api.enums import TaskQueueKind
from stepwell.api.requests import WorkerInfo

from stepwell_server.adapters.system import SystemClock
from stepwell_server.matching.service import Matching, QueueName

NAME = QueueName("default", "orders", TaskQueueKind.WORKFLOW)
ONE = WorkerInfo(identity="one", worker_key="key one")
TWO = WorkerInfo(identity="two", worker_key="key two")


@pytest.fixture
def matching() -> Matching:
    return Matching(SystemClock())


async def test_a_poll_waits_for_a_hint_and_ends_empty_in_time(matching: Matching) -> None:
    poll = asyncio.ensure_future(matching.poll(NAME, ONE, 1.0))
    await asyncio.sleep(0)
    matching.offer(NAME, "a")
    assert await poll == "a"
    assert await matching.poll(NAME, ONE, 0.02) is None
    matching.offer(NAME, "b")
    assert await matching.poll(NAME, ONE, 1.0) == "b"


async def test_queues_are_apart_by_namespace_name_and_kind(matching: Matching) -> None:
    matching.offer(NAME, "a")
    for other in (
        NAME._replace(namespace="x"),
        NAME._replace(task_queue="x"),
        NAME._replace(kind=TaskQueueKind.ACTIVITY),
    ):
        assert await matching.poll(other, ONE, 0.0) is None
    assert await matching.poll(NAME, ONE, 0.0) == "a"


async def test_a_hint_matched_to_a_poll_that_was_cancelled_goes_back(matching: Matching) -> None:
    """WC-32: the match is made, and the cancellation arrives before the waiter has run."""
    poll = asyncio.ensure_future(matching.poll(NAME, ONE, 1.0))
    await asyncio.sleep(0)
    matching.offer(NAME, "a")
    poll.cancel()
    with pytest.raises(asyncio.CancelledError):
        await poll
    assert await matching.poll(NAME, TWO, 0.0) == "a"


async def test_a_hint_that_meets_a_poll_cancelled_this_moment_is_kept(matching: Matching) -> None:
    """The waiter is cancelled, so its future is done, and it has not run since to take its poll away."""
    poll = asyncio.ensure_future(matching.poll(NAME, ONE, 1.0))
    await asyncio.sleep(0)
    poll.cancel()
    matching.offer(NAME, "a")
    with pytest.raises(asyncio.CancelledError):
        await poll
    assert await matching.poll(NAME, TWO, 0.0) == "a"


async def test_a_cancelled_poll_gets_nothing_more(matching: Matching) -> None:
    poll = asyncio.ensure_future(matching.poll(NAME, ONE, 1.0))
    await asyncio.sleep(0)
    poll.cancel()
    with pytest.raises(asyncio.CancelledError):
        await poll
    matching.offer(NAME, "a")
    assert await matching.poll(NAME, TWO, 0.0) == "a"


async def test_delayed_hints_come_when_they_are_due(matching: Matching) -> None:
    clock = SystemClock()
    matching.offer(NAME, "later", not_before=clock.now() + timedelta(milliseconds=60))
    matching.offer(NAME, "past", not_before=clock.now() - timedelta(seconds=1))
    assert await matching.poll(NAME, ONE, 0.0) == "past"
    assert await matching.poll(NAME, ONE, 0.02) is None
    assert await matching.poll(NAME, ONE, 1.0) == "later"


async def test_a_hint_without_delay_ends_the_delay_of_an_earlier_one(matching: Matching) -> None:
    matching.offer(NAME, "a", not_before=SystemClock().now() + timedelta(hours=1))
    matching.offer(NAME, "a")
    assert await matching.poll(NAME, ONE, 0.0) == "a"
    assert await matching.poll(NAME, ONE, 0.0) is None


async def test_shutdown_of_one_worker(matching: Matching) -> None:
    one = asyncio.ensure_future(matching.poll(NAME, ONE, 1.0))
    two = asyncio.ensure_future(matching.poll(NAME, TWO, 1.0))
    await asyncio.sleep(0)
    matching.shut_down_worker("default", "orders", ONE)
    assert await one is None
    assert await matching.poll(NAME, ONE, 1.0) is None
    matching.offer(NAME, "a", prefer_worker="key one")
    assert await two == "a"
    assert [poller.identity for poller in matching.pollers(NAME)] == ["two"]


async def test_pollers_and_backlog(matching: Matching) -> None:
    assert matching.pollers(NAME) == () and not matching.ever_polled(NAME)
    poll = asyncio.ensure_future(matching.poll(NAME, ONE, 0.05))
    await asyncio.sleep(0)
    assert matching.seconds_without_poller(NAME) == 0.0
    assert [poller.identity for poller in matching.pollers(NAME)] == ["one"]
    await poll
    assert 0.0 <= matching.seconds_without_poller(NAME) < 1.0
    matching.offer(NAME, "a")
    matching.offer(NAME, "b")
    assert matching.backlog(NAME) == 2
    assert matching.take_more(NAME, ONE, 5) == ["a", "b"]


async def test_stop_ends_all_polls_empty(matching: Matching) -> None:
    polls = [asyncio.ensure_future(matching.poll(NAME, worker, 5.0)) for worker in (ONE, TWO)]
    await asyncio.sleep(0)
    matching.offer(NAME, "later", not_before=SystemClock().now() + timedelta(hours=1))
    matching.stop()
    assert await asyncio.gather(*polls) == [None, None]
    assert await matching.poll(NAME, ONE, 5.0) is None
