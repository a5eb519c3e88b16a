"""An installation of functions, driven step by step: calls to an engine that lives for one call, its commits to the
feed's function through a pump, hints to task queues, and a worker that takes them from there."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from stepwell.api import requests as r
from stepwell.api.commands import CompleteWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import TaskQueueKind
from stepwell.api.events import HistoryEvent

from stepwell_server.adapters.aws import stream_records
from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.system import SystemClock
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.engine import Engine
from stepwell_server.history.feed import Feed, FeedRecord
from stepwell_server.history.lambda_handler import FeedHandler
from stepwell_server.history.queue_dispatching import QueueDispatcher
from stepwell_server.matching.ports import TaskQueues
from stepwell_server.matching.queue_name import QueueName
from tests.support.aws.event_pump import StreamPump, StreamRecord
from tests.support.engine import QUEUE, activity, payload, types

WORKER = r.WorkerInfo(identity="worker", worker_key="key of worker")
LEASE_SECONDS = 60


class ShiftedClock(SystemClock):
    """The real one, that can be put forward."""

    def __init__(self) -> None:
        self.shift = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.shift

    def monotonic(self) -> float:
        return super().monotonic() + self.shift.total_seconds()


class Functions:
    """``project`` is the visibility store's; ``poison`` are sequence numbers of records that the feed always fails
    with."""

    def __init__(self, backend: Backend, queues: TaskQueues, project: Callable[[Commit], Any]) -> None:
        self.backend = backend
        self.queues = queues
        self.poison: set[str] = set()
        self.handed_on: Counter[ExecutionKey] = Counter()
        self.engine = self._engine()
        self.timers = self._engine(hands_on=True)
        """The function that fires deadlines."""
        feed = Feed(backend.log, project=project, hand_on=self._hand_on, fire=self.engine.fire)
        loop = asyncio.get_running_loop()

        def run(work: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(work, loop).result(120)

        self._handler = FeedHandler(feed, self._parse, run, self.engine.settle)

    def _engine(self, **settings: Any) -> Engine:
        backend = self.backend
        return Engine(
            log=backend.log,
            timers=backend.timers,
            visibility=backend.visibility,
            clock=backend.clock,
            ids=backend.ids,
            token_key=backend.token_key,
            settings=EngineSettings(process=ProcessKind.ONE_CALL, sweeps=False, poll_timeout=timedelta(0), **settings),
            make_dispatcher=lambda matching: QueueDispatcher(self.queues, backend.clock, strict=True),
        )

    async def fire_next(self, workflow_ids: Iterable[str], clock: "ShiftedClock") -> bool:
        """Puts the clock to the earliest deadline of these workflows and fires what is due; False when all are over."""
        due: dict[ExecutionKey, datetime] = {}
        for workflow_id in workflow_ids:
            head = await self.backend.log.head(ExecutionKey("default", workflow_id))
            if head is not None and head.deadline is not None:
                due[head.key] = head.deadline
        if not due:
            return False
        clock.shift += max(min(due.values()) - clock.now(), timedelta(0)) + timedelta(milliseconds=1)
        now = clock.now()
        await asyncio.gather(*(self.timers.fire(key, at) for key, at in due.items() if at <= now))
        assert await self.timers.settle(20.0)
        return True

    def pump(self, rng: random.Random, **options: Any) -> StreamPump:
        """Run it in a thread: its function waits for this loop."""
        return StreamPump(self._handler, rng, **options)

    async def _hand_on(self, commit: Commit) -> None:
        self.handed_on[commit.key] += 1
        await self.engine.hand_on(commit)

    def _parse(self, record: Mapping[str, Any]) -> FeedRecord | None:
        if stream_records.number_of(record) in self.poison:
            raise ValueError("a record that nobody can handle")
        return stream_records.parse(record)

    # --- the client ---

    async def start(self, workflow_ids: Iterable[str], at_once: int = 20) -> None:
        gate = asyncio.Semaphore(at_once)

        async def one(workflow_id: str) -> None:
            async with gate:
                await self.engine.start_workflow(
                    r.StartWorkflowRequest(
                        workflow_id=workflow_id, workflow_type="order", task_queue=QUEUE, request_id=workflow_id
                    )
                )

        await asyncio.gather(*map(one, workflow_ids))

    async def history(self, workflow_id: str) -> list[HistoryEvent]:
        request = r.GetHistoryRequest(execution=WorkflowExecution(workflow_id=workflow_id))
        page = await self.engine.get_history(request)
        assert not page.next_page_token
        return list(page.events)

    # --- the worker ---

    async def work(self) -> int:
        """Takes everything that is in the queues now; how many messages led to tasks."""
        counts = await asyncio.gather(*(self._drain(kind) for kind in TaskQueueKind))
        assert await self.engine.settle(20.0)
        return sum(counts)

    async def _drain(self, kind: TaskQueueKind) -> int:
        name = QueueName("default", QUEUE, kind)
        take = self._workflow_task if kind is TaskQueueKind.WORKFLOW else self._activity_task
        count = 0
        while received := await self.queues.receive(name, 10, 0, LEASE_SECONDS):
            count += sum(await asyncio.gather(*(take(one.body) for one in received)))
            await self.queues.settle(received)
        return count

    async def _workflow_task(self, hint: str) -> bool:
        """Schedules one activity, and ends when that has."""
        asked = r.StartWorkflowTaskRequest(task_queue=QUEUE, worker=WORKER, hint=hint)
        task = (await self.engine.start_workflow_task(asked)).task
        if task is None:
            return False
        over = "ActivityTaskCompleted" in types(task.events)
        command: Any = CompleteWorkflowExecution(result=payload("done")) if over else activity("1", eager=False)
        await self.engine.respond_workflow_task_completed(
            r.RespondWorkflowTaskCompletedRequest(
                task_token=task.task_token, nonce=self.backend.ids.nonce(), worker=WORKER, commands=(command,)
            )
        )
        return True

    async def _activity_task(self, hint: str) -> bool:
        asked = r.StartActivityTaskRequest(task_queue=QUEUE, worker=WORKER, hint=hint)
        task = (await self.engine.start_activity_task(asked)).task
        if task is None:
            return False
        outcome = r.ActivityCompleted(task_token=task.task_token, result=payload("charged"))
        await self.engine.respond_activity_tasks(r.RespondActivityTasksRequest(worker=WORKER, outcomes=(outcome,)))
        return True


def key_of(record: StreamRecord) -> ExecutionKey | None:
    """Of the workflow that a record is of; None when it is of no commit."""
    parsed = stream_records.parse(record)
    return None if parsed is None else parsed.key
