"""An engine on a store in memory (or a file), driven by requests as clients and workers make them."""

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from stepwell.api import requests as r
from stepwell.api.commands import Command, CompleteWorkflowExecution, ScheduleActivityTask
from stepwell.api.common import ProcessIdentity, RetryPolicy, WorkflowExecution
from stepwell.api.enums import ResetType, WorkflowTaskFailedCause
from stepwell.api.events import HistoryEvent
from stepwell.api.failures import ApplicationFailureInfo, Failure
from stepwell.api.payloads import Payload

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.system import SystemClock
from stepwell_server.common.metrics import NO_METRICS, Metrics
from stepwell_server.common.settings import EngineSettings
from stepwell_server.history.engine import Engine
from tests.support.counting import CountingStore

QUEUE = "orders"
SHORT = timedelta(milliseconds=50)
_numbers = itertools.count(1)


def payload(text: str) -> tuple[Payload, ...]:
    return (Payload(metadata={"encoding": "json/plain"}, data=f'"{text}"'.encode()),)


def activity(
    activity_id: str, *, eager: bool = True, queue: str = QUEUE, seconds: float = 60.0, **more: Any
) -> ScheduleActivityTask:
    return ScheduleActivityTask(
        activity_id=activity_id,
        activity_type="charge",
        task_queue=queue,
        input=payload(activity_id),
        start_to_close_timeout=timedelta(seconds=seconds),
        request_eager_execution=eager,
        **more,
    )


def failure(message: str, **info: Any) -> Failure:
    return Failure(message=message, info=ApplicationFailureInfo(failure_type="Trouble", **info))


FAST_RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=100), backoff_coefficient=1.0)


class Driver:
    """One client and one worker. Every method is one request (or a few, where it says so)."""

    def __init__(self, engine: Engine, store: CountingStore) -> None:
        self.engine = engine
        self.store = store
        self.worker = r.WorkerInfo(identity="worker-1", worker_key="key-1")

    def as_worker(self, name: str, process: ProcessIdentity | None = None) -> "Driver":
        other = Driver(self.engine, self.store)
        other.worker = r.WorkerInfo(identity=name, worker_key=f"key of {name}", process=process)
        return other

    # --- client ---

    async def start(self, workflow_id: str = "order-1", **more: Any) -> str:
        request = r.StartWorkflowRequest(
            workflow_id=workflow_id,
            workflow_type="order",
            task_queue=QUEUE,
            **({"request_id": f"start {next(_numbers)}"} | more),
        )
        return (await self.engine.start_workflow(request)).run_id

    async def signal(self, workflow_id: str = "order-1", name: str = "ship", run_id: str = "", **more: Any) -> None:
        await self.engine.signal_workflow(
            r.SignalWorkflowRequest(
                execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
                signal_name=name,
                **({"request_id": f"signal {next(_numbers)}"} | more),
            )
        )

    async def reset(self, event_id: int = 0, run_id: str = "", workflow_id: str = "order-1", **more: Any) -> str:
        """The new run; to the last workflow task unless an event or a type says otherwise."""
        values: dict[str, Any] = {"request_id": f"reset {next(_numbers)}", "workflow_task_finish_event_id": event_id}
        if not event_id:
            values["reset_type"] = ResetType.LAST_WORKFLOW_TASK
        execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
        request = r.ResetWorkflowRequest(execution=execution, **(values | more))
        return (await self.engine.reset_workflow(request)).run_id

    async def describe(self, workflow_id: str = "order-1", run_id: str = "") -> r.DescribeWorkflowResponse:
        execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
        return await self.engine.describe_workflow(r.DescribeWorkflowRequest(execution=execution))

    async def history(self, workflow_id: str = "order-1", run_id: str = "") -> list[HistoryEvent]:
        """All pages."""
        events: list[HistoryEvent] = []
        token = b""
        while True:
            page = await self.engine.get_history(
                r.GetHistoryRequest(
                    execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id), next_page_token=token
                )
            )
            events += page.events
            token = page.next_page_token
            if not token:
                return events

    async def result(self, workflow_id: str = "order-1", timeout: timedelta = timedelta(seconds=5)) -> HistoryEvent:
        """The close event, waited for."""
        page = await self.engine.get_history(
            r.GetHistoryRequest(
                execution=WorkflowExecution(workflow_id=workflow_id),
                wait_new_event=True,
                close_event_only=True,
                timeout=timeout,
            )
        )
        assert page.events, "the run has not closed in time"
        return page.events[0]

    # --- worker ---

    async def poll_workflow(self, timeout: timedelta = timedelta(seconds=2)) -> r.WorkflowTask | None:
        request = r.PollWorkflowTaskRequest(task_queue=QUEUE, worker=self.worker, timeout=timeout)
        tasks = (await self.engine.poll_workflow_task(request)).tasks
        return tasks[0] if tasks else None

    async def take(self, timeout: timedelta = timedelta(seconds=20)) -> r.WorkflowTask:
        task = await self.poll_workflow(timeout)
        assert task is not None, "no workflow task came"
        return task

    async def poll_activities(
        self, maximum: int = 1, timeout: timedelta = timedelta(seconds=10), queue: str = QUEUE
    ) -> tuple[r.ActivityTask, ...]:
        request = r.PollActivityTaskRequest(
            task_queue=queue, worker=self.worker, maximum_tasks=maximum, timeout=timeout
        )
        return (await self.engine.poll_activity_task(request)).tasks

    async def complete(
        self, token: bytes, *commands: Command, slots: int = 0, nonce: str = "", **more: Any
    ) -> r.RespondWorkflowTaskCompletedResponse:
        return await self.engine.respond_workflow_task_completed(
            r.RespondWorkflowTaskCompletedRequest(
                task_token=token,
                nonce=nonce or f"completion {next(_numbers)}",
                worker=self.worker,
                commands=commands,
                eager_activities=r.EagerActivities(task_queue=QUEUE, slots=slots) if slots else None,
                **more,
            )
        )

    async def fused(
        self,
        last: r.RespondWorkflowTaskCompletedResponse,
        *commands: Command,
        now: datetime,
        slots: int = 1,
        nonce: str = "",
        outcomes: Sequence[r.ActivityOutcome] = (),
    ) -> r.RespondWorkflowTaskCompletedResponse:
        """The leased activities of ``last`` succeeded, and this is what the workflow does about it."""
        done = outcomes or tuple(
            r.ActivityCompleted(task_token=lease.task_token, result=payload(lease.activity_id)) for lease in last.leases
        )
        return await self.complete(
            last.continuation_token,
            *commands,
            slots=slots,
            nonce=nonce,
            activity_outcomes=tuple(done),
            workflow_time=now,
        )

    async def fail_task(
        self, token: bytes, message: str, cause: WorkflowTaskFailedCause | None = None
    ) -> r.RespondWorkflowTaskFailedResponse:
        return await self.engine.respond_workflow_task_failed(
            r.RespondWorkflowTaskFailedRequest(
                task_token=token,
                worker=self.worker,
                cause=cause or WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE,
                failure=failure(message),
            )
        )

    async def report(self, *outcomes: r.ActivityOutcome) -> tuple[r.ActivityOutcomeReply, ...]:
        request = r.RespondActivityTasksRequest(worker=self.worker, outcomes=outcomes)
        return (await self.engine.respond_activity_tasks(request)).replies

    async def done(self, *tasks: r.ActivityTask | r.ActivityLease) -> tuple[r.ActivityOutcomeReply, ...]:
        return await self.report(
            *(r.ActivityCompleted(task_token=task.task_token, result=payload(task.activity_id)) for task in tasks)
        )

    async def finish(self, task: r.WorkflowTask, text: str = "done") -> None:
        response = await self.complete(task.task_token, CompleteWorkflowExecution(result=payload(text)))
        assert response.outcome == "ACCEPTED", response.message


def types(events: Sequence[HistoryEvent]) -> list[str]:
    return [event.event_type for event in events]


class ShiftedClock(SystemClock):
    """The system's time, set forward by ``shift``: what is due hours from now need not be waited for."""

    shift = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.shift


@asynccontextmanager
async def running(
    path: str | Path = ":memory:",
    clock: ShiftedClock | None = None,
    metrics: Metrics = NO_METRICS,
    *,
    keeps_namespaces: bool = False,
    **settings: Any,
) -> AsyncIterator[Driver]:
    """A started engine; stopped, and its store closed, at the end."""
    backend = embedded_backend(path, clock=clock)
    store = CountingStore(backend.log)  # type: ignore[arg-type]
    engine = Engine(
        log=store,  # type: ignore[arg-type]
        timers=backend.timers,
        visibility=backend.visibility,
        clock=backend.clock,
        ids=backend.ids,
        token_key=backend.token_key,
        settings=EngineSettings(**settings),
        metrics=metrics,
        namespaces=backend.namespaces if keeps_namespaces else None,
    )
    await engine.start()
    try:
        yield Driver(engine, store)
    finally:
        await engine.stop()
        await backend.close()
