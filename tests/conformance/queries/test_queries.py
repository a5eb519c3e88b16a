"""MS-19 to MS-23, PM-22: queries read, see what was recorded before them, and leave no event."""

import pytest
from stepwell.client import RPCError, WorkflowFailureError, WorkflowQueryFailedError, WorkflowQueryRejectedError
from stepwell.common import QueryRejectCondition

from tests.conformance.queries.workflow import Counter, step
from tests.support.conformance import Feature


async def test_a_query_leaves_no_event(feature: Feature) -> None:
    async with feature.worker([Counter], [step]):
        handle = await feature.start(Counter.run)
        await feature.idle(handle)
        for _ in range(3):
            assert await handle.query(Counter.current) == 0
        await handle.signal(Counter.end)
        assert await handle.result() == 0


async def test_a_query_sees_every_earlier_signal(feature: Feature) -> None:
    """Also the one whose task is still to come."""
    async with feature.worker([Counter], [step]):
        handle = await feature.start(Counter.run)
        for total in range(1, 11):
            await handle.signal(Counter.add, 1)
            assert await handle.query(Counter.current) == total
        await handle.signal(Counter.end)
        assert await handle.result() == 10


async def test_a_closed_run_answers(feature: Feature) -> None:
    async with feature.worker([Counter], [step]):
        handle = await feature.start(Counter.run)
        await feature.idle(handle)
        await handle.signal(Counter.add, 4)
        await feature.idle(handle)
        await handle.signal(Counter.end)
        await handle.result()
        assert await handle.query(Counter.current) == 4
    async with feature.worker([Counter], [step]):
        assert await handle.query(Counter.current) == 4
        assert await handle.query(Counter.current, reject_condition=QueryRejectCondition.NOT_COMPLETED_CLEANLY) == 4
        with pytest.raises(WorkflowQueryRejectedError):
            await handle.query(Counter.current, reject_condition=QueryRejectCondition.NOT_OPEN)


async def test_a_failed_run_answers_unless_the_caller_minds(feature: Feature) -> None:
    async with feature.worker([Counter], [step]):
        handle = await feature.start(Counter.run, True)
        await feature.idle(handle)
        await handle.signal(Counter.end)
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert await handle.query(Counter.current) == 0
        for minds in (QueryRejectCondition.NOT_COMPLETED_CLEANLY, QueryRejectCondition.NOT_OPEN):
            with pytest.raises(WorkflowQueryRejectedError):
                await handle.query(Counter.current, reject_condition=minds)


async def test_a_failing_query_fails_the_caller_alone(feature: Feature) -> None:
    async with feature.worker([Counter], [step]):
        handle = await feature.start(Counter.run)
        await feature.idle(handle)
        for query, said in ((Counter.fails, "no answer"), (Counter.writes, "activity"), ("unknown", "current")):
            with pytest.raises(WorkflowQueryFailedError, match=said):
                await handle.query(query)
        assert await handle.query(Counter.current) == 0
        await handle.signal(Counter.end)
        assert await handle.result() == 0


async def test_without_a_worker_a_query_is_refused_at_once(feature: Feature) -> None:
    handle = await feature.start(Counter.run)
    with pytest.raises(RPCError) as refused:
        await handle.query(Counter.current)
    assert refused.value.code == "FAILED_PRECONDITION"
