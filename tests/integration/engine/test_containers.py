"""Two engines of one installation, each with a pump of its own over queues that they share: work goes to whichever of
them has a worker waiting, and is not lost with one of them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from stepwell.api import requests as r
from stepwell.api.enums import TaskQueueKind
from stepwell.api.errors import Unavailable

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.engine import Engine
from stepwell_server.history.hints import encode_hint, message_of, read_hint
from stepwell_server.history.ports import WorkflowTaskRef
from stepwell_server.history.queue_dispatching import QueueDispatcher
from stepwell_server.matching.memory_queues import MemoryQueues
from stepwell_server.matching.ports import QueuesUnavailable
from stepwell_server.matching.queue_name import QueueName
from stepwell_server.matching.queue_pump import QueuePump
from stepwell_server.matching.service import Matching
from tests.support.counting import CountingStore
from tests.support.engine import QUEUE, Driver, activity, types


class Container:
    """``stepwell server --aws`` less its network: it hands on what it wrote, and sweeps nothing."""

    def __init__(self, backend: Backend, queues: MemoryQueues) -> None:
        self._backend = backend
        self._queues = queues
        store = CountingStore(backend.log)  # type: ignore[arg-type]
        self.engine = Engine(
            log=store,  # type: ignore[arg-type]
            timers=backend.timers,
            visibility=backend.visibility,
            clock=backend.clock,
            ids=backend.ids,
            token_key=backend.token_key,
            settings=EngineSettings(process=ProcessKind.ONE_OF_MANY, sweeps=False),
            make_dispatcher=self._make_dispatcher,
            queue_backlog=queues.pending,
        )
        self.driver = Driver(self.engine, store)

    def _make_dispatcher(self, matching: Matching) -> QueueDispatcher:
        self.pump = QueuePump(matching, self._queues, self._backend.clock, read_hint, message_of)
        return QueueDispatcher(self._queues, self._backend.clock, matching)

    async def start(self) -> "Container":
        self.pump.start()
        await self.engine.start()
        return self

    async def stop(self) -> None:
        await self.engine.stop()
        await self.pump.stop()


@pytest.fixture
async def containers() -> AsyncIterator[tuple[Container, Container]]:
    backend = embedded_backend(":memory:")
    queues = MemoryQueues(backend.clock)
    pair = (await Container(backend, queues).start(), await Container(backend, queues).start())
    yield pair
    for container in pair:
        await container.stop()
    await backend.close()


async def test_work_made_at_one_is_taken_at_the_other(containers: tuple[Container, Container]) -> None:
    here, there = (container.driver for container in containers)
    await here.start()
    task = await there.take()
    await there.complete(task.task_token, activity("1", eager=False))
    (attempt,) = await here.poll_activities()
    await here.done(attempt)
    await there.finish(await there.take())
    assert types(await here.history())[-1] == "WorkflowExecutionCompleted"


async def test_a_worker_that_waits_here_gets_it_past_the_queue(containers: tuple[Container, Container]) -> None:
    driver, queues = containers[0].driver, containers[0]._queues
    taking = asyncio.ensure_future(driver.take())
    await asyncio.sleep(0.02)
    await driver.start()
    await taking
    assert not any(queue.messages for queue in queues._queues.values())


async def test_a_task_whose_answer_could_not_be_sent_is_taken_at_the_other(
    containers: tuple[Container, Container],
) -> None:
    here, there = (container.driver for container in containers)
    await here.start()
    response = await here.engine.poll_workflow_task(r.PollWorkflowTaskRequest(task_queue=QUEUE, worker=here.worker))
    await here.engine.undelivered(response)
    await there.finish(await there.take(timedelta(seconds=5)))


async def test_a_late_and_a_repeated_message_lead_to_nothing_and_are_settled(
    containers: tuple[Container, Container],
) -> None:
    here, there = (container.driver for container in containers)
    queues = containers[0]._queues
    run_id = await here.start()
    late = encode_hint(WorkflowTaskRef(ExecutionKey("default", "order-1"), run_id, 1))
    name = QueueName("default", QUEUE, TaskQueueKind.WORKFLOW)
    await queues.send(name, late)
    task = await there.take()
    await queues.send(name, late)
    await there.finish(task)
    await queues.send(name, late)
    assert await here.poll_workflow(timedelta(milliseconds=300)) is None
    async with asyncio.timeout(30):
        while any(queue.messages for queue in queues._queues.values()):
            await asyncio.sleep(0.01)
    assert types(await here.history()).count("WorkflowTaskStarted") == 1


async def test_a_description_counts_what_waits_in_the_queues(
    containers: tuple[Container, Container], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, queues = containers[0].driver, containers[0]._queues
    request = r.DescribeTaskQueueRequest(task_queue=QUEUE, kind=TaskQueueKind.WORKFLOW)
    assert (await driver.engine.describe_task_queue(request)).backlog_count == 0
    for number in range(3):
        await driver.start(f"order-{number}")
    assert (await driver.engine.describe_task_queue(request)).backlog_count == 3

    async def throttled(queue: QueueName) -> int:
        raise QueuesUnavailable("throttled")

    monkeypatch.setattr(queues, "pending", throttled)
    driver.engine._queue_backlog = queues.pending
    with pytest.raises(Unavailable, match="throttled"):
        await driver.engine.describe_task_queue(request)


class Slow(MemoryQueues):
    """Every send takes a turn of the loop; some are refused."""

    running = most = 0
    refuse: frozenset[str] = frozenset()

    async def send(self, queue: QueueName, body: str, delay_seconds: float = 0.0, fairness_key: str = "") -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.01)
        self.running -= 1
        if queue.task_queue in self.refuse:
            raise QueuesUnavailable("throttled")
        await super().send(queue, body, delay_seconds, fairness_key)


async def test_the_tasks_of_one_commit_are_sent_side_by_side_and_one_that_is_refused_holds_up_none() -> None:
    backend = embedded_backend(":memory:")
    queues = Slow(backend.clock)
    queues.refuse = frozenset({"closed"})
    container = await Container(backend, queues).start()
    driver = container.driver
    await driver.start()
    task = await driver.take()
    commands = [activity(str(number), eager=False) for number in range(9)]
    await driver.complete(task.task_token, activity("x", eager=False, queue="closed"), *commands)
    assert queues.most == 10
    assert len(await driver.poll_activities(maximum=10)) == 9
    (attempt,) = await driver.poll_activities(queue="closed")  # it stayed here, where a worker came
    assert attempt.activity_id == "x"
    await container.stop()
    await backend.close()
