"""Completion callbacks of a start by the unmodified SDK: told in the form of Nexus, seen in events and descriptions."""

import msgspec
import pytest
from temporalio.api.common.v1 import Callback, WorkflowType
from temporalio.api.enums.v1 import CallbackState, WorkflowIdConflictPolicy
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import CallbackInfo, OnConflictOptions
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from stepwell_server.adapters.system import SystemIds
from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.frontend.calls import Calls
from stepwell_server.temporal_gateway.server import GatewayServer
from tests.integration.engine.test_callbacks import receiving
from tests.support.cases import until


def asked(*callbacks: Callback, request_id: str = "r") -> StartWorkflowExecutionRequest:
    return StartWorkflowExecutionRequest(
        namespace="default",
        workflow_id="w",
        workflow_type=WorkflowType(name="Order"),
        task_queue=TaskQueue(name="q"),
        request_id=request_id,
        completion_callbacks=callbacks,
    )


async def test_a_callback_is_told_how_the_workflow_ended() -> None:
    async with receiving() as receiver:
        hosted = await HostedEngine.start(":memory:", callback_addresses=(receiver.url.removesuffix("/done"),))
        server = GatewayServer(Calls(hosted.engine, hosted.limiter), "1.0", SystemIds())
        try:
            client = await Client.connect(f"127.0.0.1:{await server.start('127.0.0.1', 0)}")
            service, handle = client.workflow_service, client.get_workflow_handle("w")
            callback = Callback(nexus=Callback.Nexus(url=receiver.url, header={"authorization": "secret"}))
            await service.start_workflow_execution(asked(callback))
            second = asked(callback, request_id="second")
            second.workflow_id_conflict_policy = WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
            second.on_conflict_options.CopyFrom(
                OnConflictOptions(attach_request_id=True, attach_completion_callbacks=True)
            )
            await service.start_workflow_execution(second)

            async def callbacks() -> list[CallbackInfo]:
                return list((await handle.describe()).raw_description.callbacks)

            assert {info.state for info in await callbacks()} == {CallbackState.CALLBACK_STATE_STANDBY}
            await handle.terminate()
            events = [event async for event in handle.fetch_history_events()]
            assert list(events[0].workflow_execution_started_event_attributes.completion_callbacks) == [callback]
            attached = [event.workflow_execution_options_updated_event_attributes for event in events]
            assert [list(each.attached_completion_callbacks) for each in attached].count([callback]) == 1

            async def over() -> bool:
                return {info.state for info in await callbacks()} == {CallbackState.CALLBACK_STATE_SUCCEEDED}

            await until(over)
            assert [info.callback.nexus.url for info in await callbacks()] == [receiver.url] * 2
            assert receiver.secrets == ["secret"] * 2 and receiver.told[0] == receiver.told[1]
            state, _, body = receiver.told[0]
            assert (state, msgspec.json.decode(body)["message"]) == ("failed", "operation terminated")
        finally:
            await server.stop(0)
            await hosted.stop()


async def test_addresses_are_those_that_the_installation_lets_them_to(client: Client) -> None:
    service = client.workflow_service
    with pytest.raises(RPCError, match="not among the addresses") as refused:
        await service.start_workflow_execution(asked(Callback(nexus=Callback.Nexus(url="https://example.com"))))
    assert refused.value.status is RPCStatusCode.INVALID_ARGUMENT
    with pytest.raises(RPCError, match="not for a URL") as unknown:
        await service.start_workflow_execution(asked(Callback(internal=Callback.Internal(data=b"x"))))
    assert unknown.value.status is RPCStatusCode.UNIMPLEMENTED
