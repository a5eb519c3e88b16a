"""Who polls, where others see polls as well: noted once a minute, and never a reason to refuse a poll."""

from datetime import UTC, datetime, timedelta

import pytest
from stepwell.api.enums import TaskQueueKind
from stepwell.api.errors import InvalidArgument, Unavailable
from stepwell.api.requests import PollerInfo, WorkerInfo

from stepwell_server.history.pollers import Pollers
from stepwell_server.history.ports import StoreUnavailable
from stepwell_server.matching.service import Matching, QueueName

ORDERS = QueueName("default", "orders", TaskQueueKind.WORKFLOW)
WORKER = WorkerInfo(identity="one", worker_key="key")


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


class Noted:
    def __init__(self) -> None:
        self.notes: list[tuple[str, datetime]] = []
        self.broken = False
        self.called: set[QueueName] = set()

    async def note_called(self, name: QueueName, at: datetime) -> None:
        self.called.add(name)

    async def is_called(self, name: QueueName) -> bool:
        if self.broken:
            raise StoreUnavailable("throttled")
        return name in self.called

    async def note(self, name: QueueName, identity: str, at: datetime) -> None:
        if self.broken:
            raise StoreUnavailable("throttled")
        self.notes.append((identity, at))

    async def pollers(self, name: QueueName) -> list[PollerInfo]:
        return [PollerInfo(identity=identity, last_access_time=at) for identity, at in self.notes]

    async def in_namespace(self, namespace: str, most: int) -> list[tuple[QueueName, PollerInfo]] | None:
        found = [(ORDERS._replace(namespace=namespace), poller) for poller in await self.pollers(ORDERS)]
        return found if len(found) <= most else None


async def test_a_poller_is_noted_once_a_minute_and_again_when_it_could_not_be() -> None:
    clock, noted = Clock(), Noted()
    pollers = Pollers(Matching(clock), clock, noted)
    for _ in range(5):
        await pollers.note(ORDERS, WORKER)
    assert len(noted.notes) == 1
    clock.time += timedelta(seconds=61)
    noted.broken = True
    await pollers.note(ORDERS, WORKER)
    noted.broken = False
    await pollers.note(ORDERS, WORKER)
    assert len(noted.notes) == 2


async def test_a_worker_elsewhere_counts_until_its_next_note_is_overdue() -> None:
    clock, noted = Clock(), Noted()
    pollers = Pollers(Matching(clock), clock, noted)
    limit = timedelta(seconds=20)
    assert not await pollers.polled_within(ORDERS, limit)
    await noted.note(ORDERS, "elsewhere", clock.now())
    clock.time += timedelta(seconds=75)
    assert await pollers.polled_within(ORDERS, limit)
    assert [poller.identity for poller in await pollers.of(ORDERS)] == ["elsewhere"]
    clock.time += timedelta(seconds=60)
    assert not await pollers.polled_within(ORDERS, limit)


async def test_a_worker_that_its_queue_calls_serves_it_also_when_it_is_silent() -> None:
    clock, noted = Clock(), Noted()
    pollers = Pollers(Matching(clock), clock, noted)
    await pollers.note(ORDERS, WORKER, called=True)
    noted.notes.clear()  # as they are after five minutes
    clock.time += timedelta(days=30)
    assert await pollers.polled_within(ORDERS, timedelta(seconds=20))
    assert await pollers.serve(ORDERS) and await pollers.of(ORDERS) == ()
    assert not await pollers.serve(ORDERS._replace(task_queue="other"))
    noted.broken = True
    with pytest.raises(Unavailable):
        await pollers.serve(ORDERS)


async def test_a_process_that_sees_all_polls_notes_none() -> None:
    clock = Clock()
    pollers = Pollers(Matching(clock), clock)
    await pollers.note(ORDERS, WORKER)
    assert not pollers.are_all_known and await pollers.of(ORDERS) == ()


async def test_workers_of_all_queues_of_a_namespace_with_what_they_said() -> None:
    clock = Clock()
    matching = Matching(clock)
    pollers = Pollers(matching, clock)
    worker = WorkerInfo(identity="one", worker_key="key", build_id="7")
    for kind in TaskQueueKind:
        await matching.poll(ORDERS._replace(kind=kind), worker, timeout=0)
    await matching.poll(ORDERS._replace(task_queue="bills"), WORKER, timeout=0)
    await matching.poll(ORDERS._replace(namespace="other"), WORKER, timeout=0)
    found = await pollers.workers("default")
    assert [(each.task_queue, each.kind, each.worker) for each in found] == [
        ("orders", TaskQueueKind.WORKFLOW, worker),
        ("orders", TaskQueueKind.ACTIVITY, worker),
        ("bills", TaskQueueKind.WORKFLOW, WORKER),
    ]
    assert {each.task_queue for each in await pollers.workers("default", "bills")} == {"bills"}
    matching.shut_down_worker("default", "orders", worker)
    assert {each.task_queue for each in await pollers.workers("default")} == {"bills"}
    clock.time += timedelta(minutes=6)
    assert await pollers.workers("default") == []
    assert matching.worker(ORDERS._replace(task_queue="bills"), "one") is None


async def test_where_others_see_polls_as_well_their_workers_are_listed_too() -> None:
    clock, noted = Clock(), Noted()
    noted.notes.append(("elsewhere", clock.now()))
    matching = Matching(clock)
    pollers = Pollers(matching, clock, noted)
    found = await pollers.workers("default", "orders")
    assert {each.poller.identity for each in found} == {"elsewhere"} and found[0].worker is None
    await matching.poll(ORDERS._replace(task_queue="bills"), WORKER, timeout=0)
    found = await pollers.workers("default")
    assert [(each.task_queue, each.poller.identity, each.worker) for each in found] == [
        ("orders", "elsewhere", None),
        ("bills", "one", WORKER),
    ]


async def test_more_workers_than_can_be_looked_through_are_listed_by_task_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stepwell_server.history.pollers.MOST_TOGETHER", 1)
    clock, noted = Clock(), Noted()
    noted.notes += [("one", clock.now()), ("two", clock.now())]
    pollers = Pollers(Matching(clock), clock, noted)
    with pytest.raises(InvalidArgument, match=r"too many workers.*give a task_queue"):
        await pollers.workers("default")
    assert len(await pollers.workers("default", "orders")) == 4
