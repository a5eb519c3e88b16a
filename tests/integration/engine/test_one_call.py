"""An engine that lives for one call (a function): each call here is made on an engine of its own over one store, and
work goes out by the feed and a queue of hints alone."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.commands import CompleteWorkflowExecution, StartTimer
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowUpdateStage
from stepwell.api.errors import InvalidArgument, NotFound

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.engine import Engine
from stepwell_server.history.hints import Ref, encode_hint
from stepwell_server.history.ports import ActivityTaskRef, QueryTaskRef, WorkflowTaskRef
from stepwell_server.history.query_board import MemoryQueryBoard
from tests.support.engine import QUEUE, Driver, activity, payload, types

SETTINGS = EngineSettings(process=ProcessKind.ONE_CALL, sweeps=False, poll_timeout=timedelta(0))
KEY = ExecutionKey("default", "order-1")


class Queue:
    """What the dispatcher was given, as a queue would hold it."""

    def __init__(self) -> None:
        self.hints: list[Ref] = []

    async def offer_workflow_task(self, task_queue, ref, prefer_worker="", not_before=None, priority=None) -> None:
        self.hints.append(ref)

    async def offer_activity_task(self, task_queue, ref, not_before=None, priority=None) -> None:
        self.hints.append(ref)

    async def offer_query_task(self, task_queue, ref, prefer_worker="") -> None:
        self.hints.append(ref)

    def takes_eagerly(self, namespace: str, task_queue: str) -> bool:
        return True

    def push_cancel(self, task_queue, worker_key, token) -> None:
        return None


class LastingBoard(MemoryQueryBoard):
    """Outlives the engines that use it."""

    def stop(self) -> None:
        return None


class FreshEngine:
    """Has every method of an engine; each call is made by one that was made for it."""

    def __init__(self, functions: "Functions") -> None:
        self._functions = functions

    def __getattr__(self, operation: str):
        async def call(*arguments):
            engine = self._functions.engine()
            await engine.start()
            try:
                return await getattr(engine, operation)(*arguments)
            finally:
                assert await engine.settle(5.0)
                await engine.stop()

        return call


class Functions:
    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.queue = Queue()
        self.board = LastingBoard()
        self.calls: Engine = FreshEngine(self)  # type: ignore[assignment]
        self.driver = Driver(self.calls, backend.log)  # type: ignore[arg-type]
        self._fed = 0

    def engine(self) -> Engine:
        backend = self.backend
        return Engine(
            log=backend.log,
            timers=backend.timers,
            visibility=backend.visibility,
            clock=backend.clock,
            ids=backend.ids,
            token_key=backend.token_key,
            settings=SETTINGS,
            make_dispatcher=lambda matching: self.queue,
            query_board=self.board,
        )

    async def feed(self) -> list[Ref]:
        """Every new commit to the feed's function; returns the hints that are in the queue then."""
        while (commit := await self.backend.log.get(KEY, self._fed + 1)) is not None:
            self._fed += 1
            await self.calls.hand_on(commit)
        hints, self.queue.hints = self.queue.hints, []
        return hints

    async def take(self, ref: Ref) -> r.WorkflowTask | None:
        request = r.StartWorkflowTaskRequest(task_queue=QUEUE, worker=self.driver.worker, hint=encode_hint(ref))
        return (await self.calls.start_workflow_task(request)).task

    async def take_activity(self, ref: Ref, queue: str = QUEUE) -> r.ActivityTask | None:
        request = r.StartActivityTaskRequest(task_queue=queue, worker=self.driver.worker, hint=encode_hint(ref))
        return (await self.calls.start_activity_task(request)).task


@pytest.fixture
async def functions() -> AsyncIterator[Functions]:
    backend = embedded_backend(":memory:")
    yield Functions(backend)
    await backend.close()


async def test_a_workflow_with_a_queued_activity_goes_from_start_to_end(functions: Functions) -> None:
    driver = functions.driver
    await driver.start()
    assert functions.queue.hints == []  # the call has only committed
    (hint,) = await functions.feed()
    task = await functions.take(hint)
    assert task is not None
    await driver.complete(task.task_token, activity("1", eager=False))
    (hint,) = await functions.feed()
    assert isinstance(hint, ActivityTaskRef)
    attempt = await functions.take_activity(hint)
    assert attempt is not None and await functions.take_activity(hint) is None  # the message came twice
    await driver.done(attempt)
    (hint,) = await functions.feed()
    task = await functions.take(hint)
    assert task is not None and "ActivityTaskCompleted" in types(task.events)
    await driver.finish(task)
    assert await functions.feed() == []
    assert types(await driver.history())[-1] == "WorkflowExecutionCompleted"


async def test_a_message_that_comes_again_gives_the_task_again_and_one_completion_wins(functions: Functions) -> None:
    await functions.driver.start()
    (hint,) = await functions.feed()
    one, two = await functions.take(hint), await functions.take(hint)
    assert one is not None and two is not None
    answers = [
        await functions.driver.complete(task.task_token, CompleteWorkflowExecution(result=payload("done")))
        for task in (one, two)
    ]
    assert [answer.outcome for answer in answers] == ["ACCEPTED", "STALE"]
    assert await functions.take(hint) is None


async def test_a_deadline_fires_through_the_engine_of_a_call(functions: Functions) -> None:
    driver = functions.driver
    await driver.start()
    (hint,) = await functions.feed()
    task = await functions.take(hint)
    assert task is not None
    await driver.complete(task.task_token, StartTimer(timer_id="t", start_to_fire_timeout=timedelta(milliseconds=1)))
    await asyncio.sleep(0.02)
    await functions.calls.fire(KEY, functions.backend.clock.now())
    hints = await functions.feed()
    task = await functions.take(hints[-1])
    assert task is not None and "TimerFired" in types(task.events)


async def test_what_the_feed_repeats_adds_only_hints(functions: Functions) -> None:
    await functions.driver.start()
    commit = await functions.backend.log.get(KEY, 1)
    assert commit is not None
    for _ in range(3):
        await functions.calls.hand_on(commit)
    assert len(functions.queue.hints) == 3 and len(set(functions.queue.hints)) == 1
    assert await functions.backend.log.get(KEY, 2) is None


async def test_calls_that_would_wait_are_answered_at_once(functions: Functions) -> None:
    await functions.driver.start()
    with pytest.raises(AssertionError, match="not closed"):
        await functions.driver.result(timeout=timedelta(seconds=20))
    update = r.UpdateWorkflowRequest(
        execution=WorkflowExecution(workflow_id="order-1"),
        update_id="u",
        update_name="change",
        wait_for_stage=WorkflowUpdateStage.COMPLETED,
        timeout=timedelta(seconds=20),
    )
    answer = await functions.calls.update_workflow(update)
    assert answer.stage == WorkflowUpdateStage.ADMITTED


async def test_hints_of_other_queues_kinds_and_namespaces_give_nothing(functions: Functions) -> None:
    run_id = await functions.driver.start()
    ref = WorkflowTaskRef(KEY, run_id, 1)
    other = r.StartWorkflowTaskRequest(task_queue="elsewhere", worker=functions.driver.worker, hint=encode_hint(ref))
    assert (await functions.calls.start_workflow_task(other)).task is None
    with pytest.raises(InvalidArgument, match="another kind"):
        await functions.take_activity(ref)
    with pytest.raises(InvalidArgument, match="another kind"):
        await functions.take(ActivityTaskRef(KEY, run_id, 5, 1))
    with pytest.raises(InvalidArgument, match="another namespace"):
        await functions.take(WorkflowTaskRef(ExecutionKey("theirs", "order-1"), run_id, 1))
    request = r.StartWorkflowTaskRequest(task_queue=QUEUE, worker=functions.driver.worker, hint="hello")
    with pytest.raises(InvalidArgument, match="drop the message"):
        await functions.calls.start_workflow_task(request)
    assert await functions.take(QueryTaskRef(KEY, run_id, "nobody waits")) is None
    assert await functions.take(WorkflowTaskRef(KEY, "of another run", 1)) is None


async def test_a_query_is_asked_in_turns(functions: Functions) -> None:
    driver = functions.driver
    await driver.start()
    ask = r.QueryWorkflowRequest(execution=WorkflowExecution(workflow_id="order-1"), query_type="status")
    answer = await functions.calls.query_workflow(ask)
    assert answer.query_token  # the first workflow task is outstanding
    (hint,) = await functions.feed()
    task = await functions.take(hint)
    assert task is not None
    await driver.complete(task.task_token)
    ask = msgspec.structs.replace(ask, query_token=answer.query_token)
    answer = await functions.calls.query_workflow(ask)
    (hint,) = await functions.feed()
    assert isinstance(hint, QueryTaskRef)
    task = await functions.take(hint)
    assert task is not None and task.query is not None and task.query.query_type == "status"
    reply = r.RespondQueryTaskCompletedRequest(task_token=task.task_token, result=payload("paid"))
    await functions.calls.respond_query_task_completed(reply)
    with pytest.raises(NotFound):
        await functions.calls.respond_query_task_completed(reply)
    assert await functions.take(hint) is None
    ask = msgspec.structs.replace(ask, query_token=answer.query_token)
    answer = await functions.calls.query_workflow(ask)
    assert answer.result == payload("paid") and not answer.query_token


async def test_a_query_that_meets_a_new_task_waits_for_it(functions: Functions) -> None:
    driver = functions.driver
    await driver.start()
    (hint,) = await functions.feed()
    task = await functions.take(hint)
    assert task is not None
    await driver.complete(task.task_token)
    ask = r.QueryWorkflowRequest(execution=WorkflowExecution(workflow_id="order-1"), query_type="status")
    answer = await functions.calls.query_workflow(ask)
    await driver.signal()
    hints = await functions.feed()
    query = next(hint for hint in hints if isinstance(hint, QueryTaskRef))
    assert await functions.take(query) is None
    task = await functions.take(next(hint for hint in hints if isinstance(hint, WorkflowTaskRef)))
    assert task is not None
    await driver.complete(task.task_token)
    await functions.calls.query_workflow(msgspec.structs.replace(ask, query_token=answer.query_token))
    assert [type(hint) for hint in await functions.feed()] == [QueryTaskRef]


async def test_a_query_token_is_for_its_own_workflow(functions: Functions) -> None:
    for workflow_id in ("order-1", "order-2"):
        await functions.driver.start(workflow_id)
    ask = r.QueryWorkflowRequest(execution=WorkflowExecution(workflow_id="order-2"), query_type="status")
    token = (await functions.calls.query_workflow(ask)).query_token
    other = msgspec.structs.replace(ask, execution=WorkflowExecution(workflow_id="order-1"), query_token=token)
    with pytest.raises(InvalidArgument, match="another workflow"):
        await functions.calls.query_workflow(other)
