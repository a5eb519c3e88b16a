"""An installation that asks for registration refuses calls in namespaces that nobody registered."""

import pytest
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.errors import NamespaceNotFound

from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.frontend.routes import HANDLERS


async def test_only_registered_namespaces_are_served() -> None:
    hosted = await HostedEngine.start(":memory:", require_registered_namespaces=True)

    async def start(namespace: str) -> None:
        request = r.StartWorkflowRequest(namespace=namespace, workflow_id="w", workflow_type="t", task_queue="q")
        handler = HANDLERS[o.START_WORKFLOW.name]
        await hosted.limiter.carry_out(handler, hosted.engine, o.START_WORKFLOW, request)

    await start("default")
    with pytest.raises(NamespaceNotFound, match="'shop' is not registered"):
        await start("shop")
    await hosted.engine.namespaces.register(r.RegisterNamespaceRequest(namespace="shop"))
    await start("shop")
    await hosted.stop()
