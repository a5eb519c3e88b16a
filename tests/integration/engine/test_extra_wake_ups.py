"""Wake-ups that come for nothing: early, again, of a record that was there before, of a write that never came. Whatever
they were for, what there is to do the record alone says; so they change nothing."""

from datetime import timedelta

from stepwell.api import requests as r
from stepwell.api.batches import BatchTerminate
from stepwell.api.common import WorkflowExecution
from stepwell.api.requests import Deduplication

from stepwell_server.common.control import ControlRecord, wake_up_id
from stepwell_server.history.commit import ExecutionKey
from tests.support.scheduled import Scheduled, scheduled


async def records(s: Scheduled) -> list[ControlRecord]:
    assert s.engine.wake_ups is not None
    found: list[ControlRecord] = []
    for kind in s.engine.wake_ups.kinds:
        for namespace in ("", "default"):
            found += await s.control.inner.list(kind, namespace, limit=99)
    return found


async def wake(s: Scheduled, kind: str, namespace: str, id: str) -> bool:
    return await s.engine.fire(ExecutionKey(namespace, wake_up_id(kind, id)), s.clock.now())


async def test_of_what_is_not_there_whatever_its_kind() -> None:
    async with scheduled() as s:
        assert s.engine.wake_ups is not None
        for kind in s.engine.wake_ups._handlers:
            assert await wake(s, kind, "default", "gone") and await wake(s, kind, "", "gone")
        assert await records(s) == []


async def test_of_what_is_there_and_has_nothing_to_do_yet() -> None:
    async with scheduled() as s:
        await s.create()
        await s.call("RegisterNamespace", r.RegisterNamespaceRequest(namespace="shop"))
        start = r.StartWorkflowRequest(
            workflow_id="w",
            workflow_type="t",
            task_queue="q",
            deduplication=Deduplication(key="order 1", ttl=timedelta(days=1)),
        )
        await s.call("StartWorkflow", start)
        batch = r.StartBatchOperationRequest(
            job_id="job", operation=BatchTerminate(), executions=(WorkflowExecution(workflow_id="w"),)
        )
        await s.call("StartBatchOperation", batch)
        await s.fire()
        before = await records(s)
        assert s.engine.wake_ups is not None
        woken = {record.kind for record in before} & s.engine.wake_ups._handlers.keys()
        assert {"schedule", "namespace", "batch"} < woken and len(woken) == 4
        writes = s.control.writes
        for record in before:
            if record.kind in woken:
                assert await wake(s, record.kind, record.namespace, record.id)
        assert await records(s) == before and s.control.writes == writes
