"""PM-30: headers reach the workflow, its handlers and its activities, and are not the caller's to forget."""

from stepwell.client import Client

from tests.conformance.context_propagation.workflow import Asks, FromClient, Tenants, tenant, whose, whose_in_a_thread
from tests.support.conformance import Feature


async def test_headers_travel(feature: Feature) -> None:
    client = Client(feature.client.transport, interceptors=[FromClient()])
    async with feature.worker([Asks], [whose, whose_in_a_thread], interceptors=[Tenants()]):
        tenant.set("ann")
        handle = await client.start_workflow(Asks.run, id=feature.id_of("run"), task_queue=feature.task_queue)
        await feature.follow(handle, "run")
        await feature.idle(handle)
        tenant.set("bob")
        await handle.signal(Asks.visit)
        assert await handle.result() == ["ann", "ann", "ann", "bob"]
