"""LC-07: a start delay holds the first workflow task back, and the first message ends it."""

from datetime import timedelta

import pytest
from stepwell.client import RPCError, WorkflowFailureError

from tests.conformance.start_delay.workflow import Delayed
from tests.support.conformance import Feature


async def test_it_holds_the_first_task_back(feature: Feature) -> None:
    delay = timedelta(milliseconds=300)
    async with feature.worker([Delayed]):
        handle = await feature.start(Delayed.run, start_delay=delay)
        assert await handle.result() == []
        events = (await handle.fetch_history()).events
        assert events[1].event_time - events[0].event_time >= delay


async def test_the_first_signal_ends_it(feature: Feature) -> None:
    async with feature.worker([Delayed]):
        handle = await feature.start(Delayed.run, start_delay=timedelta(hours=1))
        await handle.signal(Delayed.put, "now")
        assert await handle.result() == ["now"]


async def test_a_cancel_request_ends_it(feature: Feature) -> None:
    async with feature.worker([Delayed]):
        handle = await feature.start(Delayed.run, start_delay=timedelta(hours=1))
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()


async def test_it_does_not_go_with_a_cron_schedule(feature: Feature) -> None:
    with pytest.raises(RPCError, match="leave one of them out"):
        await feature.start(Delayed.run, start_delay=timedelta(hours=1), cron_schedule="@daily")


async def test_an_update_ends_it(feature: Feature) -> None:
    async with feature.worker([Delayed]):
        handle = await feature.start(Delayed.run, start_delay=timedelta(hours=1))
        assert await handle.execute_update(Delayed.give, "now") == 1
        assert await handle.result() == ["now"]


async def test_a_query_before_it_is_over_says_when_to_ask(feature: Feature) -> None:
    async with feature.worker([Delayed]):
        handle = await feature.start(Delayed.run, start_delay=timedelta(hours=1))
        with pytest.raises(RPCError, match="so there is nothing to ask yet") as refused:
            await handle.query(Delayed.count)
        assert refused.value.code == "FAILED_PRECONDITION"
        await handle.signal(Delayed.put, "now")
        assert await handle.result() == ["now"]
        assert await handle.query(Delayed.count) == 1
