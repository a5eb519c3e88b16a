"""Who writes on the strength of what it knew earlier gets nothing through that loses or doubles anything: the seq and
the version decide, and the nonce tells one's own write from another's.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients, ServiceClient
from stepwell_server.adapters.aws.faults import unavailable
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.history.engine import Engine
from stepwell_server.history.ports import Conflict, StoreUnavailable, VersionConflict
from tests.integration.aws.conftest import Store
from tests.support.aws.cells import Cell
from tests.support.counting import CountingStore
from tests.support.engine import Driver, activity, types
from tests.support.sample_commits import SampleRun, sample_item


def lose_answers(service: ServiceClient, monkeypatch: pytest.MonkeyPatch, *operations: str) -> list[str]:
    """The first call of each: carried out, and its answer lost on the way."""
    left = list(operations)
    send = service._send

    async def losing(operation: str, parameters: Any) -> Any:
        answer = await send(operation, parameters)
        if operation in left:
            left.remove(operation)
            raise unavailable("dynamodb", operation, "", "the connection broke before the answer")
        return answer

    monkeypatch.setattr(service, "_send", losing)
    return left


async def test_a_stale_writer_is_told_what_took_its_place(store: Store) -> None:
    commits = list(SampleRun(1).commits())
    await store.append_all(commits[:2])
    stale = await store.another_process()
    assert await stale.log.head(commits[0].key) == commits[1]
    await store.append_all(commits[2:4])
    late = msgspec.structs.replace(commits[2], nonce="late", kind="Terminate")
    for _ in range(3):
        with pytest.raises(Conflict) as refused:
            await stale.log.append(late)
        assert refused.value.existing == commits[2]
    assert await store.log.head(commits[0].key) == commits[3]
    await stale.backend.close()


async def test_ones_own_retry_after_a_lost_answer_is_known_by_its_nonce(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = next(SampleRun(2).commits())
    await store.log.head(start.key)
    lost = lose_answers(store.clients.service("dynamodb"), monkeypatch, "put_item")
    with pytest.raises(Conflict) as refused:
        await store.log.append(start)
    assert lost == [] and refused.value.existing.nonce == start.nonce
    assert store.sort_keys() == ["C#000000000001"]


async def test_an_items_own_retry_is_known_by_its_nonce(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    item = msgspec.structs.replace(sample_item(SampleRun(3)), nonce="mine")
    await store.log.activities(SampleRun(3).commits().__next__().key, item.run_id, [item.scheduled_event_id])
    lose_answers(store.clients.service("dynamodb"), monkeypatch, "put_item")
    with pytest.raises(VersionConflict) as refused:
        await store.log.put_activity(item)
    assert refused.value.existing is not None and refused.value.existing.nonce == "mine"


async def test_a_marker_put_twice_by_a_retry_is_ones_own(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    start, now = next(SampleRun(4).commits()), store.clock.now()
    await store.log.get_marker(start.key, "one")
    lose_answers(store.clients.service("dynamodb"), monkeypatch, "put_item")
    marker = await store.log.put_marker(start.key, "one", b"mine", expires_at=now + timedelta(hours=1), now=now)
    assert marker.value == b"mine"


async def test_a_write_that_cannot_be_made_is_unavailable_and_may_be_made_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = next(SampleRun(5).commits())
    dynamodb = store.clients.service("dynamodb")
    original = dynamodb.call

    async def throttled(operation: str, /, **parameters: Any) -> Any:
        raise unavailable("dynamodb", operation, "", "ThrottlingException")

    monkeypatch.setattr(dynamodb, "call", throttled)
    with pytest.raises(StoreUnavailable):
        await store.log.append(start, arm=start.time + timedelta(seconds=10))
    monkeypatch.setattr(dynamodb, "call", original)
    await store.log.append(start, arm=start.time + timedelta(seconds=10))
    assert await store.log.head(start.key) == start


@pytest.fixture
async def drivers(cell: Cell) -> AsyncIterator[tuple[Driver, Driver]]:
    """Two processes of one installation, each with its engine, store and memory."""
    backends = [await aws_backend(AwsSettings(cell.names.cell), clients=AwsClients()) for _ in range(2)]
    made: list[Driver] = []
    for backend in backends:
        store = CountingStore(backend.log)  # type: ignore[arg-type]
        settings = EngineSettings(process=ProcessKind.ONE_OF_MANY, sweeps=False)
        engine = Engine(
            log=store,  # type: ignore[arg-type]
            timers=backend.timers,
            visibility=backend.visibility,
            clock=backend.clock,
            ids=backend.ids,
            token_key=backend.token_key,
            settings=settings,
        )
        await engine.start()
        made.append(Driver(engine, store))
    yield made[0], made[1]
    for driver, backend in zip(made, backends, strict=True):
        await driver.engine.stop()
        await backend.close()


async def test_of_two_workers_with_one_task_one_goes_on(drivers: tuple[Driver, Driver]) -> None:
    one, two = drivers
    runs = await asyncio.gather(one.start(request_id="same"), two.start(request_id="same"))
    assert runs[0] == runs[1]
    # The task is with the process whose start was written.
    polls = [asyncio.create_task(driver.take()) for driver in drivers]
    (took, *_), _ = await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
    task = took.result()
    for poll in polls:
        poll.cancel()
    await asyncio.wait(polls)
    answers = await asyncio.gather(
        one.complete(task.task_token, activity("1"), slots=1), two.complete(task.task_token, activity("1"), slots=1)
    )
    assert sorted(answer.outcome for answer in answers) == ["ACCEPTED", "STALE"]
    assert types(await one.history()).count("ActivityTaskScheduled") == 1


async def test_a_process_that_paused_for_minutes_gets_nothing_through(drivers: tuple[Driver, Driver]) -> None:
    """It has the run cached as it was, and a worker's answer to give."""
    paused, other = drivers
    await paused.start()
    task = await paused.take()
    await other.signal(name="meanwhile")
    taken_over = await other.complete(task.task_token, activity("1"), slots=1)
    assert taken_over.outcome == "ACCEPTED"
    late = await paused.complete(task.task_token, activity("2"), slots=1)
    assert late.outcome == "STALE"
    history = await paused.history()
    assert history == await other.history()
    assert types(history).count("ActivityTaskScheduled") == 1
    await paused.signal(name="afterwards")  # by then it has read where the run is
    following = await other.take()
    assert types(following.events).count("WorkflowExecutionSignaled") == 2
    written = sorted(commit.seq for driver in drivers for commit in driver.store.commits)
    assert written == list(range(1, len(written) + 1))


async def test_signals_through_two_processes_all_count_once(drivers: tuple[Driver, Driver]) -> None:
    one, _ = drivers
    await one.start()
    await asyncio.gather(*(driver.signal(name=str(number)) for number in range(6) for driver in drivers))
    task = await one.take()
    assert types(task.events).count("WorkflowExecutionSignaled") == 12
