"""Import of a history on DynamoDB (LC-46): one commit, with its payloads in the bucket, and a run that goes on."""

from datetime import timedelta

from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.events import HistoryEvent, WorkflowExecutionSignaled

from stepwell_server.history.commit import ExecutionKey
from tests.integration.batcher.places import on_aws
from tests.support.aws.cells import Cell
from tests.support.engine import payload, running, types

KEY = ExecutionKey("default", "order-1")
ORDER = WorkflowExecution(workflow_id="order-1")


async def signalled(count: int, *, close: bool) -> tuple[HistoryEvent, ...]:
    """Each signal brings a payload that is an object in the bucket."""
    async with running() as there:
        await there.start()
        task = await there.take()
        for number in range(count):
            await there.signal(name=f"s{number}", input=payload("".join(map(chr, range(1_000, 11_000)))))
        await there.complete(task.task_token)
        if close:
            await there.finish(await there.take())
        return tuple(await there.history())


async def test_a_run_is_there_whole_and_goes_on(cell: Cell) -> None:
    events = await signalled(20, close=False)
    async with on_aws(cell) as place:
        request = r.ImportWorkflowRequest(execution=ORDER, events=events, request_id="move-1")
        response = await place.call("ImportWorkflow", request)
        assert await place.call("ImportWorkflow", request) == response
        assert await place.history(ORDER) == list(events)
        (info,) = (await place.engine.list_workflows(r.ListWorkflowsRequest())).executions
        assert (info.execution.run_id, info.status.value) == (response.run_id, "RUNNING")
        poll = r.PollWorkflowTaskRequest(
            task_queue="orders", worker=r.WorkerInfo(identity="w", worker_key="w"), timeout=timedelta(seconds=20)
        )
        (task,) = (await place.engine.poll_workflow_task(poll)).tasks
        assert types(task.events)[-1] == "WorkflowTaskStarted"
        assert sum(isinstance(event.attributes, WorkflowExecutionSignaled) for event in task.events) == 20


async def test_closed_runs_one_behind_the_other(cell: Cell) -> None:
    first, second = await signalled(1, close=True), await signalled(1, close=True)
    async with on_aws(cell) as place:
        ids = []
        for events in (first, second):
            request = r.ImportWorkflowRequest(execution=ORDER, events=events)
            ids.append((await place.call("ImportWorkflow", request)).run_id)
        for run_id, events in zip(ids, (first, second), strict=True):
            assert await place.history(WorkflowExecution(workflow_id="order-1", run_id=run_id)) == list(events)
        head = await place.backend.log.head(KEY)
        assert head is not None and head.expires_at is not None and head.seq == 2
        found = (await place.engine.list_workflows(r.ListWorkflowsRequest())).executions
        assert [info.execution.run_id for info in found] == ids[::-1]
        await place.runs("order-1")
