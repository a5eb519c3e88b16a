"""LC-01, PM-04, PM-28: a start happens once per request id, and its arguments are there before any message."""

from stepwell.api.requests import StartWorkflowResponse

from tests.conformance.starts.workflow import Says
from tests.support.cases import json_payload
from tests.support.conformance import Feature


async def test_a_repeated_request_gets_the_run_it_made(feature: Feature) -> None:
    """Also when that run has ended, where another request would be a new run, or refused."""

    async def start() -> StartWorkflowResponse:
        return await feature.start_by_request(
            "Says", feature.id_of("run"), request_id="request 1", input=(json_payload('"hello"'),)
        )

    first = await start()
    handle = feature.client.get_workflow_handle(feature.id_of("run"), run_id=first.run_id)
    await feature.follow(handle, "run")
    again = await start()
    await handle.signal(Says.also, "end")
    async with feature.worker([Says]):
        await handle.result()
        late = await start()
    assert (again.run_id, late.run_id) == (first.run_id, first.run_id)
    assert (first.started, again.started) == (True, True)


async def test_arguments_are_there_before_the_first_signal(feature: Feature) -> None:
    handle = await feature.start(Says.run, "hello", 2)
    await handle.signal(Says.also, "you")
    await handle.signal(Says.also, "end")
    async with feature.worker([Says]):
        assert await handle.result() == ["hello", "hello", "you", "end", "Says", 1]
