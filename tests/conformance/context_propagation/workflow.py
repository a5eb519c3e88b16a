"""A tenant that travels in headers: from the client to the workflow, from there to each activity (PM-30)."""

import contextvars
from datetime import timedelta
from typing import Any

from stepwell import activity, workflow
from stepwell.api.payloads import Payload
from stepwell.client import Interceptor as ClientInterceptor
from stepwell.client import OutboundInterceptor, SignalWorkflowInput, StartWorkflowInput, WorkflowHandle
from stepwell.converter import DataConverter
from stepwell.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    HandleSignalInput,
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")
CONVERTER = DataConverter.default.payload_converter


def header() -> dict[str, Payload]:
    return {"tenant": CONVERTER.to_payload(tenant.get(), str)}


def take(headers: Any) -> None:
    if "tenant" in headers:
        tenant.set(CONVERTER.from_payload(headers["tenant"], str))


class _Client(OutboundInterceptor):
    async def start_workflow(self, input: StartWorkflowInput) -> "WorkflowHandle[Any]":
        input.headers = header()
        return await self.next.start_workflow(input)

    async def signal_workflow(self, input: SignalWorkflowInput) -> None:
        input.headers = header()
        await self.next.signal_workflow(input)


class FromClient(ClientInterceptor):
    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Client(next)


class _Outbound(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> "workflow.ActivityHandle[Any]":
        input.headers = header()
        return self.next.start_activity(input)


class _Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        self.next.init(_Outbound(outbound))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        take(input.headers)
        return await self.next.execute_workflow(input)

    async def handle_signal(self, input: HandleSignalInput) -> None:
        take(input.headers)
        await self.next.handle_signal(input)


class _Attempt(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        take(input.headers)
        return await self.next.execute_activity(input)


class Tenants(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Attempt(next)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        return _Inbound


@activity.defn
async def whose() -> str:
    return tenant.get()


@activity.defn
def whose_in_a_thread() -> str:
    return tenant.get()


@workflow.defn
class Asks:
    """Its own tenant is that of the start; a signal's handler has that of the signal."""

    def __init__(self) -> None:
        self.visitor = ""

    @workflow.run
    async def run(self) -> list[str]:
        mine = [
            tenant.get(),
            await workflow.execute_activity(whose, start_to_close_timeout=timedelta(seconds=30)),
            await workflow.execute_activity(whose_in_a_thread, start_to_close_timeout=timedelta(seconds=30)),
        ]
        await workflow.wait_condition(lambda: bool(self.visitor))
        return [*mine, self.visitor]

    @workflow.signal
    async def visit(self) -> None:
        self.visitor = await workflow.execute_activity(whose, start_to_close_timeout=timedelta(seconds=30))
