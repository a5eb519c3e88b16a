"""MS-10, MS-16: a signal that is sent again counts once, by its request and by a key of the sender's own."""

import pytest
from stepwell.api import operations as op
from stepwell.api.common import WorkflowExecution
from stepwell.api.requests import SignalWorkflowRequest

from tests.conformance.signal_repeats.workflow import Account
from tests.support.cases import json_payload
from tests.support.conformance import Feature


@pytest.mark.continued
async def test_a_repeated_request_counts_once(feature: Feature) -> None:
    """While the first one's task is still to come, and when it is done."""
    async with feature.worker([Account]):
        handle = await feature.start(Account.run, 100)
        await feature.idle(handle)
        request = SignalWorkflowRequest(
            execution=WorkflowExecution(workflow_id=handle.id),
            signal_name="pay",
            input=(json_payload("7"),),
            request_id="once",
        )
        await feature.client.transport.call(op.SIGNAL_WORKFLOW, request)
        await feature.client.transport.call(op.SIGNAL_WORKFLOW, request)
        await feature.idle(handle)
        await feature.client.transport.call(op.SIGNAL_WORKFLOW, request)
        await handle.signal(Account.end)
        assert await handle.result() == 107


@pytest.mark.continued
async def test_a_key_of_the_senders_own_counts_once(feature: Feature) -> None:
    async with feature.worker([Account]):
        handle = await feature.start(Account.run, 100)
        await feature.idle(handle)
        for key in ("invoice 1", "invoice 2", "invoice 1"):
            await handle.signal(Account.pay, 7, idempotency_key=key)
            await feature.idle(handle)
        await handle.signal(Account.end)
        assert await handle.result() == 114
