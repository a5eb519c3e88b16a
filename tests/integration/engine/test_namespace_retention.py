"""What a namespace says of its retention is obeyed by commits, claims and the loop that deletes (MT-02)."""

import asyncio
import dataclasses
from datetime import timedelta
from typing import Any

from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.limits import DEFAULT_RETENTION

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.common.settings import EngineSettings
from stepwell_server.common.spaces import of_activities
from stepwell_server.entrypoints.making import make_engine
from stepwell_server.entrypoints.retention_loop import keep_retention
from stepwell_server.history.commit import ExecutionKey
from tests.support.engine import ShiftedClock

DAY = timedelta(days=1)
NOW = timedelta(0)
SHOP, OTHER = ExecutionKey("shop", "w"), ExecutionKey("other", "w")


def alone(key: ExecutionKey) -> ExecutionKey:
    """Of the stand-alone activity with that id."""
    return ExecutionKey(of_activities(key.namespace), key.workflow_id)


async def test_runs_go_when_their_namespace_says_so() -> None:
    clock = ShiftedClock()
    backend = embedded_backend(":memory:", clock=clock)
    engine = make_engine(backend, EngineSettings())
    await engine.start()
    await engine.namespaces.register(r.RegisterNamespaceRequest(namespace="shop", retention=DAY))
    for key in (SHOP, OTHER):
        execution = WorkflowExecution(workflow_id=key.workflow_id)
        await engine.start_workflow(
            r.StartWorkflowRequest(
                namespace=key.namespace, workflow_id=key.workflow_id, workflow_type="t", task_queue="q"
            )
        )
        await engine.signal_workflow(
            r.SignalWorkflowRequest(
                namespace=key.namespace, execution=execution, signal_name="s", idempotency_key="once"
            )
        )
        await engine.terminate_workflow(r.TerminateWorkflowRequest(namespace=key.namespace, execution=execution))
        await engine.start_activity(
            r.StartActivityRequest(
                namespace=key.namespace,
                activity_id=key.workflow_id,
                activity_type="t",
                task_queue="q",
                start_to_close_timeout=DAY,
            )
        )
        await engine.terminate_activity(
            r.TerminateActivityRequest(namespace=key.namespace, activity_id=key.workflow_id)
        )
        head = await backend.log.head(key)
        assert head is not None and head.expires_at is not None
        assert head.expires_at - head.time == (DAY if key is SHOP else DEFAULT_RETENTION)

    async def sweep() -> None:
        """One round of the loop."""
        done = asyncio.Event()

        async def noted(*times: Any) -> list[ExecutionKey]:
            try:
                return await backend.sweep(*times)
            finally:
                done.set()

        watched = dataclasses.replace(backend, sweep=noted)
        loop = asyncio.create_task(keep_retention(watched, engine, DEFAULT_RETENTION, first=NOW, interval=DAY))
        await done.wait()
        loop.cancel()
        await asyncio.wait([loop])

    clock.shift = DAY - timedelta(minutes=1)
    await sweep()
    assert await backend.log.head(SHOP) is not None and await backend.log.head(alone(SHOP)) is not None
    clock.shift = DAY + timedelta(minutes=1)
    await sweep()
    assert await backend.log.head(SHOP) is None and await backend.log.head(OTHER) is not None
    assert await backend.log.head(alone(SHOP)) is None and await backend.log.head(alone(OTHER)) is not None
    clock.shift = DEFAULT_RETENTION + timedelta(minutes=1)
    await sweep()
    assert await backend.log.head(OTHER) is None and await backend.log.head(alone(OTHER)) is None
    await engine.stop()
    await backend.close()
