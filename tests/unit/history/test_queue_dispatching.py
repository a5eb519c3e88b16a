"""Where hints go when task queues outlive processes."""

from datetime import timedelta

import pytest
from stepwell.api.common import Priority
from stepwell.api.enums import TaskQueueKind
from stepwell.api.requests import WorkerInfo

from stepwell_server.adapters.system import SystemClock
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.hints import read_hint
from stepwell_server.history.ports import ActivityTaskRef, WorkflowTaskRef
from stepwell_server.history.queue_dispatching import QueueDispatcher
from stepwell_server.history.task_tokens import ActivityToken
from stepwell_server.matching.memory_queues import MemoryQueues
from stepwell_server.matching.ports import QueueError, QueueRefused, QueuesUnavailable
from stepwell_server.matching.service import Matching, QueueName
from stepwell_server.matching.task_queue import Push
from tests.support.asking import polling

KEY = ExecutionKey("default", "order-1")
TASK = WorkflowTaskRef(KEY, "run", 1)
ATTEMPT = ActivityTaskRef(KEY, "run", 5, 1)
WORKFLOWS = QueueName("default", "orders", TaskQueueKind.WORKFLOW)
ACTIVITIES = QueueName("default", "orders", TaskQueueKind.ACTIVITY)
WORKER = WorkerInfo(identity="one", worker_key="key one")


class Sent(MemoryQueues):
    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.sent: list[tuple[QueueName, str, float, str]] = []
        self.refuse: QueueError | None = None

    async def send(self, queue: QueueName, body: str, delay_seconds: float = 0.0, fairness_key: str = "") -> None:
        if self.refuse is not None:
            raise self.refuse
        self.sent.append((queue, body, delay_seconds, fairness_key))


@pytest.fixture
def queues() -> Sent:
    return Sent()


@pytest.fixture
def matching() -> Matching:
    return Matching(SystemClock())


async def test_a_poll_that_waits_here_is_served_without_the_queue(queues: Sent, matching: Matching) -> None:
    dispatcher = QueueDispatcher(queues, SystemClock(), matching)
    async with polling(matching, WORKFLOWS, WORKER) as poll:
        await dispatcher.offer_workflow_task("orders", TASK)
        assert await poll == TASK
    assert queues.sent == []


async def test_without_a_poll_it_goes_to_the_queue_with_its_priority(queues: Sent, matching: Matching) -> None:
    dispatcher = QueueDispatcher(queues, SystemClock(), matching)
    async with polling(matching, WORKFLOWS, WORKER):  # of the other kind
        await dispatcher.offer_activity_task("orders", ATTEMPT, priority=Priority(fairness_key="tenant"))
    ((queue, body, delay, fairness_key),) = queues.sent
    assert (queue, delay, fairness_key) == (ACTIVITIES, 0.0, "tenant")
    assert read_hint(body) == (ATTEMPT, Priority(fairness_key="tenant"))
    assert matching.backlog(ACTIVITIES) == 0


@pytest.mark.parametrize(("seconds", "sent"), [(-5, True), (30, True), (899, True), (901, False), (7 * 86_400, False)])
async def test_what_is_due_later_waits_in_the_queue_and_what_is_due_much_later_for_its_deadline(
    queues: Sent, matching: Matching, seconds: int, sent: bool
) -> None:
    clock = SystemClock()
    for dispatcher in (QueueDispatcher(queues, clock, matching), QueueDispatcher(queues, clock)):
        await dispatcher.offer_workflow_task("orders", TASK, not_before=clock.now() + timedelta(seconds=seconds))
    assert len(queues.sent) == (2 if sent else 0)
    for _, _, delay, _ in queues.sent:
        assert max(seconds - 5, 0) <= delay <= max(seconds, 0)


async def test_what_is_due_in_a_moment_waits_in_this_process(queues: Sent, matching: Matching) -> None:
    clock = SystemClock()
    dispatcher = QueueDispatcher(queues, clock, matching)
    await dispatcher.offer_workflow_task("orders", TASK, not_before=clock.now() + timedelta(milliseconds=40))
    assert queues.sent == []
    assert await matching.poll(WORKFLOWS, WORKER, 5.0) == TASK


@pytest.mark.parametrize("refusal", [QueuesUnavailable("throttled"), QueueRefused("no rights")])
async def test_what_cannot_be_sent_stays_here_and_is_an_error_only_where_somebody_tries_again(
    queues: Sent, matching: Matching, refusal: QueueError
) -> None:
    queues.refuse = refusal
    await QueueDispatcher(queues, SystemClock(), matching).offer_workflow_task("orders", TASK)
    assert await matching.poll(WORKFLOWS, WORKER, 0.0) == TASK
    await QueueDispatcher(queues, SystemClock()).offer_workflow_task("orders", TASK)
    with pytest.raises(QueueError):
        await QueueDispatcher(queues, SystemClock(), strict=True).offer_activity_task("orders", ATTEMPT)


async def test_eager_activities_stop_where_a_rate_limit_is_known(queues: Sent, matching: Matching) -> None:
    dispatcher = QueueDispatcher(queues, SystemClock(), matching)
    assert dispatcher.takes_eagerly("default", "orders")
    await matching.poll(ACTIVITIES, WORKER, 0.0, 5.0)
    assert not dispatcher.takes_eagerly("default", "orders")
    assert QueueDispatcher(queues, SystemClock()).takes_eagerly("default", "orders")


async def test_a_cancellation_is_pushed_to_a_poll_that_is_open_here(queues: Sent, matching: Matching) -> None:
    token = ActivityToken("default", "order-1", "run", 5, 1, False)
    async with polling(matching, ACTIVITIES, WORKER) as poll:
        QueueDispatcher(queues, SystemClock(), matching).push_cancel("orders", "key one", token)
        assert await poll == Push(token)
    QueueDispatcher(queues, SystemClock()).push_cancel("orders", "key one", token)
