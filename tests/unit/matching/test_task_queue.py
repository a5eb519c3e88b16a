"""One task queue: who gets which hint, and that none is lost."""

import asyncio

from stepwell_server.matching.task_queue import MAX_PUSHES, Poll, Push, TaskQueue


def poll_of(worker_key: str) -> "Poll[str]":
    return Poll(worker_key, f"identity of {worker_key}", asyncio.get_running_loop().create_future())


async def test_hints_wait_in_order_and_repeats_are_dropped() -> None:
    queue: TaskQueue[str] = TaskQueue()
    for ref in ("a", "b", "a", "c"):
        queue.offer(ref, "", 0.0)
    assert [queue.take("", 0.0) for _ in range(4)] == ["a", "b", "c", None]


async def test_a_waiting_poll_gets_the_hint_at_once_the_longest_waiting_first() -> None:
    queue: TaskQueue[str] = TaskQueue()
    first, second = poll_of("one"), poll_of("two")
    queue.polls = {first: None, second: None}
    queue.offer("a", "", 0.0)
    assert first.future.result() == "a" and not second.future.done()
    assert not queue.ready


async def test_the_preferred_worker_goes_first_if_it_waits() -> None:
    queue: TaskQueue[str] = TaskQueue()
    first, second = poll_of("one"), poll_of("two")
    queue.polls = {first: None, second: None}
    queue.offer("a", "two", 0.0)
    assert second.future.result() == "a"
    queue.offer("b", "two", 0.0)
    assert first.future.result() == "b"


async def test_a_worker_takes_what_prefers_it_unless_another_has_waited_too_long() -> None:
    queue: TaskQueue[str] = TaskQueue()
    queue.offer("a", "one", 0.0)
    queue.offer("b", "two", 0.0)
    queue.offer("c", "two", 0.0)
    assert queue.take("two", 0.5) == "b"
    assert queue.take("two", 2.0) == "a"
    assert queue.take("one", 2.0) == "c"
    assert queue.ready_for == {}


async def test_put_back_goes_to_the_front() -> None:
    queue: TaskQueue[str] = TaskQueue()
    queue.offer("a", "", 0.0)
    queue.offer("b", "", 0.0)
    taken = queue.take("", 0.0)
    assert taken == "a"
    queue.put_back("a", 1.0)
    assert [queue.take("", 1.0), queue.take("", 1.0)] == ["a", "b"]


async def test_shutdown_ends_the_workers_polls_and_frees_what_preferred_it() -> None:
    queue: TaskQueue[str] = TaskQueue()
    gone, other = poll_of("gone"), poll_of("other")
    queue.polls = {gone: None, other: None}
    queue.seen = {"identity of gone": 0.0, "identity of other": 0.0}
    queue.shut_down_worker("gone", "identity of gone", 1.0)
    assert gone.future.result() is None and not other.future.done()
    assert list(queue.seen) == ["identity of other"]
    queue.close_poll(other)
    queue.offer("a", "gone", 1.0)
    assert queue.take("other", 1.0) == "a" and queue.ready_for == {}


async def test_idle_when_nothing_is_left() -> None:
    queue: TaskQueue[str] = TaskQueue()
    queue.seen["worker"] = 10.0
    queue.shut_down["key"] = 10.0
    assert not queue.idle
    queue.forget_before(11.0)
    assert queue.idle


async def test_a_push_is_for_one_worker_and_only_if_it_is_there() -> None:
    queue: TaskQueue[str] = TaskQueue()
    first, second = poll_of("one"), poll_of("two")
    queue.polls = {first: None, second: None}
    queue.push(Push("stop"), "two", 0.0)
    assert second.future.result() == Push("stop") and not first.future.done()
    queue.push(Push("again"), "two", 0.0)
    queue.push(Push("again"), "two", 0.0)
    assert queue.take("two", 0.0) is None and not queue.idle
    assert queue.take_pushes("one") == [] and queue.take_pushes("two") == [Push("again")]
    assert queue.take_pushes("two") == []


async def test_pushes_that_nobody_fetches_are_few_and_forgotten() -> None:
    queue: TaskQueue[str] = TaskQueue()
    for number in range(MAX_PUSHES + 5):
        queue.push(Push(number), "gone", 1.0)
    assert len(queue.pushes["gone"]) == MAX_PUSHES
    queue.forget_before(2.0)
    assert queue.idle
    queue.push(Push("word"), "stopping", 3.0)
    queue.shut_down_worker("stopping", "identity", 3.0)
    queue.push(Push("word"), "stopping", 3.0)
    assert not queue.pushes
