"""Deleting runs (LC-12) where the table deletes by itself: what is marked goes at once, whenever a process dies and
whatever the feed marks before or behind, and what another run needs stays."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowIDReusePolicy
from stepwell.api.errors import NotFound

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients, Made
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.history.commit import BEGINNING, Commit, ExecutionKey
from stepwell_server.history.engine import Engine
from stepwell_server.history.ports import StoreUnavailable
from stepwell_server.history.queue_dispatching import QueueDispatcher
from tests.integration.aws.conftest import Store, open_store
from tests.support.aws.cells import Cell, Provisioning
from tests.support.aws.functions import ShiftedClock
from tests.support.engine import QUEUE
from tests.support.sample_commits import SampleRun, chain, sample_item

HOUR, WEEK = timedelta(hours=1), timedelta(days=7)
CHANGES = ("put_item", "update_item", "delete_item")


async def closed(store: Store, number: int) -> list[Commit]:
    run = SampleRun(number)
    commits = list(run.commits())
    await store.append_all(commits)
    await store.log.put_activity(sample_item(run))
    await store.log.put_prefix(commits[0].key, run.run_id, BEGINNING + 1, commits[0].events, now=store.clock.now())
    await store.log.put_marker(
        commits[0].key, "signal:1", b"2", expires_at=commits[-1].time + WEEK, now=commits[0].time
    )
    return commits


async def erase(store: Store, commits: list[Commit], run_id: str = "") -> None:
    await store.log.erase_run(commits[0].key, run_id or commits[0].run_id)


@pytest.mark.parametrize("marked", ["before", "behind", "never"])
async def test_all_but_the_head_goes_at_once_and_the_head_a_week_later(store: Store, marked: str) -> None:
    commits = await closed(store, 1)
    if marked == "before":
        await store.expire(commits)
    await erase(store, commits)
    if marked == "behind":
        await store.expire(commits)
    store.clock.go(HOUR)
    store.delete_expired()
    kept = [item["sk"]["S"] for item in store.items()]
    assert [key for key in kept if not key.startswith("B#")] == [f"C#{len(commits):012d}"]
    other = await store.another_process()
    assert await other.log.head(commits[0].key) == commits[-1]
    assert await other.log.find_run(commits[0].key, commits[0].run_id) is None
    await other.backend.close()
    store.clock.go(WEEK)
    store.delete_expired()
    assert store.items() == []


async def test_the_feed_that_was_marking_it_makes_nothing_stay_longer(store: Store) -> None:
    """A call that had looked before the run was erased goes on with its later times."""
    commits = await closed(store, 2)
    retention: Any = store.backend.retention
    looked = retention._ended(commits[-1])
    await erase(store, commits)
    await retention._mark(commits[0].key, looked, again=True)
    assert await store.log.find_run(commits[0].key, commits[0].run_id) is None
    store.clock.go(HOUR)
    store.delete_expired()
    assert store.sort_keys() == [f"C#{len(commits):012d}"]


async def test_whichever_write_it_dies_behind_the_next_one_does_the_rest(
    cell: Cell, provisioning: Provisioning, store: Store
) -> None:
    first, second, third = chain(3, runs=3)
    flat = [*first, *second, *third]
    await store.append_all(flat)
    key, run_id = flat[0].key, second[0].run_id
    died = 0
    while True:
        mortal = await open_store(cell, provisioning.dynamodb, store.clock)
        left = [1 + died]

        def observer(made: Made, left: list[int] = left) -> None:
            if made.operation in CHANGES:
                left[0] -= 1
                if left[0] == 0:
                    raise StoreUnavailable("the process is dead")

        mortal.clients.observer = observer
        try:
            await mortal.log.erase_run(key, run_id)
        except StoreUnavailable:
            died += 1
        else:
            break
        finally:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others, return_exceptions=True)  # writes that were on their way
            await mortal.backend.close()
    assert died > 2
    await store.log.erase_run(key, run_id)
    assert await store.log.find_run(key, run_id) is None
    await store.expire(flat)
    for run in (first, third):
        place = await store.log.find_run(key, run[0].run_id)
        assert place is not None and place.state_of(run[0].run_id) is not None
    store.clock.go(HOUR)
    store.delete_expired()
    page = await store.log.read_events(key, first[0].run_id, 0, 1_000)
    assert len(page.events) == 23
    page = await store.log.read_events(key, third[0].run_id, third[0].seq - 1, 1_000)
    assert len(page.events) == 23
    store.clock.go(3 * WEEK)
    store.delete_expired()
    assert store.items() == []


async def test_functions_delete_also_when_the_feed_is_lost(cell: Cell, provisioning: Provisioning) -> None:
    """No record of the stream is read; the deadline's function does it all. The id goes on meanwhile."""
    clock = ShiftedClock()
    clients = AwsClients()
    backend = await aws_backend(AwsSettings(cell.names.cell, cell.bucket), clients=clients, clock=clock)
    calls, timers = (_engine(backend, hands_on=hands_on) for hands_on in (False, True))
    execution = WorkflowExecution(workflow_id="order-1")
    start = r.StartWorkflowRequest(
        workflow_id="order-1",
        workflow_type="order",
        task_queue=QUEUE,
        workflow_id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
    )
    first = (await calls.start_workflow(start)).run_id
    await calls.delete_workflow(r.DeleteWorkflowRequest(execution=execution))
    with pytest.raises(NotFound):
        await calls.describe_workflow(r.DescribeWorkflowRequest(execution=execution))
    second = (await calls.start_workflow(start)).run_id
    key = ExecutionKey("default", "order-1")
    head = await backend.log.head(key)
    assert head is not None and head.state.owed and head.deadline is not None
    clock.shift += head.deadline - clock.now() + timedelta(seconds=1)
    await timers.fire(key, head.deadline)
    assert await timers.settle(20.0)
    head = await backend.log.head(key)
    assert head is not None and head.run_id == second and not head.state.owed
    assert await backend.log.find_run(key, first) is None
    described = await calls.describe_workflow(r.DescribeWorkflowRequest(execution=execution))
    assert described.info.execution.run_id == second
    await calls.delete_workflow(r.DeleteWorkflowRequest(execution=execution))
    head = await backend.log.head(key)
    assert head is not None
    await timers.hand_on(head)
    assert await timers.settle(20.0)
    head = await backend.log.head(key)
    assert head is not None and head.state.deleted and not head.state.owed
    clock.shift += HOUR
    store = Store(backend, clock, None, cell, provisioning.dynamodb, clients)  # type: ignore[arg-type]
    store.delete_expired()
    assert store.sort_keys() == [f"C#{head.seq:012d}"]
    await backend.close()


def _engine(backend: Any, **settings: Any) -> Engine:
    return Engine(
        log=backend.log,
        timers=backend.timers,
        visibility=backend.visibility,
        clock=backend.clock,
        ids=backend.ids,
        token_key=backend.token_key,
        settings=EngineSettings(process=ProcessKind.ONE_CALL, sweeps=False, poll_timeout=timedelta(0), **settings),
        make_dispatcher=lambda matching: QueueDispatcher(_NoQueues(), backend.clock),  # type: ignore[arg-type]
    )


class _NoQueues:
    """Nobody works here."""

    async def send(self, *message: Any) -> None:
        return None
