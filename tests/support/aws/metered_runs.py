"""What the counted installation is asked to do: runs by requests as the SDK makes them, with arguments and results of
200 bytes, that compress no better than letters and digits do.
"""

import itertools
import random
import string
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from typing import Any

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.commands import Command, CompleteWorkflowExecution, RecordMarker, ScheduleActivityTask, StartTimer
from stepwell.api.common import WorkflowExecution
from stepwell.api.payloads import Payload

from tests.support.aws.metered import MeteredCell

QUEUE = "orders"
PAYLOAD_BYTES = 200
WORKER = r.WorkerInfo(identity="4711@worker-7f9c4d-x2x7q", worker_key="4711@worker-7f9c4d-x2x7q-1c8b64")
POLL = timedelta(seconds=30)
_rng = random.Random(1)
_numbers = itertools.count(1)


def data() -> tuple[Payload, ...]:
    text = "".join(_rng.choices(string.ascii_letters + string.digits, k=PAYLOAD_BYTES - 2))
    return (Payload(metadata={"encoding": "json/plain"}, data=f'"{text}"'.encode()),)


def activity(number: int, *, eager: bool) -> ScheduleActivityTask:
    return ScheduleActivityTask(
        activity_id=str(number),
        activity_type="charge_card",
        task_queue=QUEUE,
        input=data(),
        start_to_close_timeout=timedelta(seconds=60),
        request_eager_execution=eager,
    )


class MeteredRun:
    """One workflow, its client and its worker."""

    def __init__(self, cell: MeteredCell, workflow_id: str) -> None:
        self.cell = cell
        self.workflow_id = workflow_id
        self.commit_time: Any = None

    # --- client ---

    async def start(self) -> None:
        request = r.StartWorkflowRequest(
            workflow_id=self.workflow_id,
            workflow_type="fulfil_order",
            task_queue=QUEUE,
            input=data(),
            request_id=f"{next(_numbers):032x}",
        )
        await self.cell.call(o.START_WORKFLOW, request)

    async def signal(self) -> None:
        request = r.SignalWorkflowRequest(
            execution=WorkflowExecution(workflow_id=self.workflow_id),
            signal_name="shipped",
            input=data(),
            request_id=f"{next(_numbers):032x}",
        )
        await self.cell.call(o.SIGNAL_WORKFLOW, request)

    # --- worker ---

    async def workflow_task(self, after: Awaitable[Any] | None) -> r.WorkflowTask:
        request = r.PollWorkflowTaskRequest(task_queue=QUEUE, worker=WORKER, timeout=POLL)
        task: r.WorkflowTask = await self.cell.worker_takes(o.POLL_WORKFLOW_TASK, request, after)
        assert task.execution.workflow_id == self.workflow_id
        return task

    async def activity_task(self, after: Awaitable[Any] | None) -> r.ActivityTask:
        request = r.PollActivityTaskRequest(task_queue=QUEUE, worker=WORKER, maximum_tasks=1, timeout=POLL)
        task: r.ActivityTask = await self.cell.worker_takes(o.POLL_ACTIVITY_TASK, request, after)
        return task

    async def complete(
        self, token: bytes, *commands: Command, slots: int = 0, outcomes: Sequence[r.ActivityOutcome] = (), **more: Any
    ) -> r.RespondWorkflowTaskCompletedResponse:
        request = r.RespondWorkflowTaskCompletedRequest(
            task_token=token,
            nonce=f"{next(_numbers):x}",
            worker=WORKER,
            commands=commands,
            activity_outcomes=tuple(outcomes),
            workflow_time=self.commit_time if outcomes else None,
            eager_activities=r.EagerActivities(task_queue=QUEUE, slots=slots) if slots else None,
            **more,
        )
        response: r.RespondWorkflowTaskCompletedResponse = await self.cell.call(
            o.RESPOND_WORKFLOW_TASK_COMPLETED, request
        )
        assert response.outcome == "ACCEPTED", response.message
        self.commit_time = response.commit_time
        return response

    async def report(self, *tokens: bytes) -> None:
        outcomes = tuple(r.ActivityCompleted(task_token=token, result=data()) for token in tokens)
        replies = (
            await self.cell.call(
                o.RESPOND_ACTIVITY_TASKS, r.RespondActivityTasksRequest(worker=WORKER, outcomes=outcomes)
            )
        ).replies
        assert [reply.error_code for reply in replies] == [""] * len(outcomes)

    async def close(self, token: bytes, **more: Any) -> None:
        await self.complete(token, CompleteWorkflowExecution(result=data()), **more)
        await self.cell.feed()

    # --- ways to take a step ---

    async def fused_step(
        self, last: r.RespondWorkflowTaskCompletedResponse, number: int
    ) -> r.RespondWorkflowTaskCompletedResponse:
        return await self.complete(
            last.continuation_token, activity(number, eager=True), slots=1, outcomes=self._outcomes(last)
        )

    async def fused_close(self, last: r.RespondWorkflowTaskCompletedResponse) -> None:
        await self.close(last.continuation_token, outcomes=self._outcomes(last))

    def _outcomes(self, last: r.RespondWorkflowTaskCompletedResponse) -> list[r.ActivityOutcome]:
        return [r.ActivityCompleted(task_token=lease.task_token, result=data()) for lease in last.leases]

    async def eager_step(self, task: r.WorkflowTask, number: int) -> r.WorkflowTask:
        """The activity comes with the answer; its result alone goes back, and causes a workflow task."""
        answer = await self.complete(task.task_token, activity(number, eager=True), slots=1)
        await self.cell.feed()
        (lease,) = answer.leases
        return await self.workflow_task(self.report(lease.task_token))

    async def queued_step(self, task: r.WorkflowTask, number: int) -> r.WorkflowTask:
        attempt = await self.activity_task(self.complete(task.task_token, activity(number, eager=False)))
        await self.cell.feed()
        return await self.workflow_task(self.report(attempt.task_token))

    # --- whole runs, with what they leave behind ---

    async def fused(self, activities: int) -> None:
        task = await self.workflow_task(self.start())
        last = await self.complete(task.task_token, activity(1, eager=True), slots=1)
        for number in range(2, activities + 1):
            await self.cell.feed()
            last = await self.fused_step(last, number)
        await self.fused_close(last)

    async def eager(self, activities: int) -> None:
        task = await self.workflow_task(self.start())
        for number in range(1, activities + 1):
            task = await self.eager_step(task, number)
        await self.close(task.task_token)

    async def queued(self, activities: int) -> None:
        task = await self.workflow_task(self.start())
        for number in range(1, activities + 1):
            task = await self.queued_step(task, number)
        await self.close(task.task_token)

    async def fan_out(self, activities: int, at_once: int = 10) -> None:
        """Through the queue, reported in batches, as workers do."""
        task = await self.workflow_task(self.start())
        await self.complete(task.task_token, *(activity(number, eager=False) for number in range(activities)))
        await self.cell.feed()
        for start in range(0, activities, at_once):
            tasks = [await self.activity_task(None) for _ in range(start, min(start + at_once, activities))]
            await self.report(*(attempt.task_token for attempt in tasks))
        await self.close((await self.workflow_task(None)).task_token)


async def warm(cell: MeteredCell) -> None:
    """What each process pays once: names of queues, their settings, workers' sources."""
    for number in range(2):
        await MeteredRun(cell, f"warm-{number}").queued(2)
        await cell.fire()
    cell.meter.reset()


def marker() -> Command:
    return RecordMarker(marker_name="local_activity", details={"data": data()[0]})


def timer(after: timedelta) -> Command:
    return StartTimer(timer_id="1", start_to_fire_timeout=after)
