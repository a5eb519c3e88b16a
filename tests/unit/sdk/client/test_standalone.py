"""Calls about activities without a workflow, of which the answer is lost."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest
from stepwell.api.operations import Operation
from stepwell.client import ActivityFailureError, ActivityHandle, Client, WorkflowExecutionStatus
from stepwell.testing import DevEnvironment
from stepwell.transport import Transport


class Noted:
    """Keeps the last call."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.last: tuple[Operation[Any, Any], Any] | None = None

    async def call(self, operation: Operation[Any, Any], request: Any) -> Any:
        self.last = operation, request
        return await self._transport.call(operation, request)

    async def close(self) -> None:
        await self._transport.close()


async def started(client: Client) -> ActivityHandle[Any]:
    return await client.start_activity(
        "charge", id="charge-1", task_queue="nobody", start_to_close_timeout=timedelta(minutes=1)
    )


@pytest.mark.parametrize("end", [ActivityHandle.cancel, ActivityHandle.terminate])
async def test_a_repeat_reaches_no_later_run_of_the_id(
    end: Callable[[ActivityHandle[Any]], Coroutine[Any, Any, None]],
) -> None:
    """As over HTTP: the first answer is lost, and what may be repeated is. Meanwhile somebody starts the id anew."""
    async with await DevEnvironment.start() as env:
        noted = Noted(env.client.transport)
        await started(env.client)
        anyone = Client(noted).get_activity_handle("charge-1")
        await end(anyone)
        assert noted.last is not None
        operation, request = noted.last
        with pytest.raises(ActivityFailureError):
            await anyone.result()
        later = await started(env.client)
        if operation.idempotent:
            await env.client.transport.call(operation, request)
        described = await later.describe()
        assert described.status is WorkflowExecutionStatus.RUNNING and not described.cancel_requested
