"""Workflow code that reaches into another namespace (MT-11): as it is written, from one worker to another."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from stepwell import workflow
from stepwell.client import Client, WorkflowFailureError
from stepwell.exceptions import ApplicationError
from stepwell.worker import Worker

from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.entrypoints.http_server import HttpServer
from stepwell_server.frontend.asgi import Application
from stepwell_server.frontend.guard import LoopbackGuard


@pytest.fixture
async def url() -> AsyncIterator[str]:
    hosted = await HostedEngine.start(":memory:")
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = HttpServer(Application(hosted.engine, guard=LoopbackGuard(port), database="memory", version="0"))
    serving = asyncio.ensure_future(server.serve(listener))
    yield f"http://127.0.0.1:{port}"
    server.stop()
    await serving
    await hosted.stop()


@workflow.defn
class Pack:
    def __init__(self) -> None:
        self._said = ""

    @workflow.signal
    def say(self, text: str) -> None:
        self._said = text

    @workflow.run
    async def run(self, what: str) -> str:
        await workflow.wait_condition(lambda: self._said != "")
        return f"{what} {self._said} in {workflow.info().namespace}"


@workflow.defn
class Order:
    @workflow.run
    async def run(self, kid: str) -> list[str]:
        child = await workflow.start_child_workflow(Pack.run, "cup", id=kid, namespace="shop", task_queue="pack")
        there = workflow.get_external_workflow_handle_for(Pack.run, "pen", namespace="shop")
        await there.signal(Pack.say, "blue")
        await child.signal(Pack.say, "red")
        return [await child, await there.result(result_type=str)]


async def test_a_workflow_has_a_child_and_another_workflow_elsewhere(url: str) -> None:
    async with await Client.connect(url) as client, await Client.connect(url, namespace="shop") as shop:
        await client.namespaces.register("shop")
        async with (
            Worker(client, task_queue="orders", workflows=[Order]),
            Worker(shop, task_queue="pack", workflows=[Pack]),
        ):
            await shop.start_workflow(Pack.run, "pen", id="pen", task_queue="pack")
            with pytest.raises(WorkflowFailureError) as refused:
                await client.execute_workflow(Order.run, "not-yet", id="order-1", task_queue="orders")
            cause = refused.value.cause
            assert isinstance(cause, ApplicationError) and cause.type == "NAMESPACE_NOT_ALLOWED"
            await client.namespaces.update("shop", callers_allowed=["default"])
            result = await client.execute_workflow(Order.run, "kid", id="order-2", task_queue="orders")
            assert result == ["cup red in shop", "pen blue in shop"]
