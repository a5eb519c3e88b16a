"""The order of a task queue: priorities, turns by key and weight, and what it costs (TQ-12, TQ-13)."""

from itertools import groupby

import pytest
from stepwell.api.common import Priority

from stepwell_server.matching.order import Ordered, Turns
from stepwell_server.matching.task_queue import TaskQueue


def tenant(key: str, weight: float = 0.0, priority_key: int = 0) -> Priority:
    return Priority(priority_key=priority_key, fairness_key=key, fairness_weight=weight)


def filled(*offers: tuple[str, Priority | None]) -> "TaskQueue[str]":
    queue: TaskQueue[str] = TaskQueue()
    for ref, priority in offers:
        queue.offer(ref, "", 0.0, priority)
    return queue


def drained(queue: "TaskQueue[str]", most: int = 1_000_000) -> list[str]:
    taken: list[str] = []
    while len(taken) < most and (ref := queue.take("", 0.0)) is not None:
        taken.append(ref)
    return taken


def test_lower_priorities_go_first_and_three_is_what_nothing_means() -> None:
    levels = [5, 3, None, 1, 4, 2, 3, 1]
    queue = filled(
        *((f"{level}-{number}", Priority(priority_key=level) if level else None) for number, level in enumerate(levels))
    )
    assert drained(queue) == ["1-3", "1-7", "2-5", "3-1", "None-2", "3-6", "4-4", "5-0"]


def test_equal_priority_and_key_is_the_order_of_arrival() -> None:
    queue = filled(*((f"{number:03}", tenant("one", weight)) for number, weight in enumerate([1.0, 5.0, 0.01] * 50)))
    assert drained(queue) == sorted(f"{number:03}" for number in range(150))


def test_keys_take_turns_however_much_of_one_waits() -> None:
    queue = filled(
        *((f"big-{number}", tenant("big")) for number in range(1000)),
        *((f"small-{number}", tenant("small")) for number in range(3)),
    )
    first = [ref.split("-")[0] for ref in drained(queue, 7)]
    assert sorted(first[:6]) == ["big"] * 3 + ["small"] * 3
    assert all(len(list(turn)) == 1 for _, turn in groupby(first[:5]))


@pytest.mark.parametrize("weight", [2.0, 3.0, 10.0])
def test_turns_are_by_weight_and_count_what_was_dispatched(weight: float) -> None:
    queue = filled(
        *((f"heavy-{number}", tenant("heavy", weight)) for number in range(2000)),
        *((f"light-{number}", tenant("light")) for number in range(2000)),
    )
    first = [ref.split("-")[0] for ref in drained(queue, 1100)]
    assert first.count("heavy") / first.count("light") == pytest.approx(weight, rel=0.05)


def test_one_that_comes_late_is_neither_behind_the_backlog_nor_owed_the_past() -> None:
    queue = filled(*((f"old-{number}", tenant("old")) for number in range(500)))
    drained(queue, 300)
    for number in range(100):
        queue.offer(f"new-{number}", "", 0.0, tenant("new"))
    first = [ref.split("-")[0] for ref in drained(queue, 40)]
    assert 19 <= first.count("new") <= 21


def test_fairness_is_within_a_priority() -> None:
    queue = filled(
        *((f"busy-{number}", tenant("busy", priority_key=1)) for number in range(10)),
        ("other", tenant("other", 1000.0, priority_key=2)),
    )
    assert drained(queue)[-1] == "other"


def test_what_comes_back_goes_first_whatever_its_priority() -> None:
    queue = filled(("urgent", Priority(priority_key=1)), ("late", Priority(priority_key=5)))
    assert drained(queue) == ["urgent", "late"]
    queue.offer("another", "", 0.0, Priority(priority_key=1))
    queue.put_back("late", 0.0)
    queue.put_back("urgent", 0.0)
    assert drained(queue) == ["urgent", "late", "another"]


def test_what_prefers_a_worker_waits_for_what_is_more_urgent() -> None:
    queue: TaskQueue[str] = TaskQueue()
    queue.offer("urgent", "", 0.0, Priority(priority_key=1))
    queue.offer("equal", "", 0.0)
    queue.offer("mine", "me", 0.0)
    assert [queue.take("me", 0.0) for _ in range(3)] == ["urgent", "mine", "equal"]


def test_nothing_is_kept_of_keys_that_do_not_wait() -> None:
    queue: TaskQueue[str] = TaskQueue()
    queue.offer("stays", "", 0.0, tenant("one", priority_key=5))
    for number in range(1000):
        queue.offer("passes", "", 0.0, tenant(f"key {number}"))
        assert queue.take("", 0.0) == "passes"
    assert len(queue.turns._keys) == 1
    assert queue.take("", 0.0) == "stays"
    assert queue.turns._keys == {} and queue.turns._now == {}


def test_the_heap_does_not_grow_with_what_left_out_of_order() -> None:
    ordered: Ordered[int] = Ordered()
    turns = Turns()
    ordered.add(-1, turns.place(Priority(priority_key=1)))
    for number in range(10_000):
        ordered.add(number, turns.place(None))
        ordered.remove(number)
    assert ordered.first() == -1 and len(ordered) == 1
    assert len(ordered._heap) <= 66


def test_a_poll_does_not_cost_more_with_a_long_backlog() -> None:
    """Comparisons of places, counted: they grow with the logarithm."""

    def comparisons(backlog: int) -> int:
        queue = filled(*((f"{number}", tenant(f"key {number % 7}")) for number in range(backlog)))
        count = 0

        class Counted(tuple):  # type: ignore[type-arg]
            __slots__ = ()

            def __lt__(self, other: object) -> bool:
                nonlocal count
                count += 1
                return tuple.__lt__(self, other)  # type: ignore[operator]

        queue.order._heap = [Counted(entry) for entry in queue.order._heap]  # type: ignore[misc]
        assert len(drained(queue, 50)) == 50
        return count

    few = comparisons(200)
    assert 0 < few and comparisons(20_000) < 3 * few
