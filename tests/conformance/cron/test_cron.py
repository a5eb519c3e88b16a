"""LC-24, PM-29: a workflow with a cron schedule is run at each of its times, one run behind the other."""

from datetime import timedelta
from itertools import pairwise

import pytest
from stepwell.client import WorkflowExecutionStatus, WorkflowFailureError
from stepwell.exceptions import TerminatedError

from tests.conformance.cron.workflow import counts
from tests.support.cases import until
from tests.support.conformance import Feature


async def test_runs_follow_each_other_with_the_last_result(feature: Feature) -> None:
    async with feature.worker([counts]):
        handle = await feature.start(counts, cron_schedule="@every 1s")
        newest = feature.client.get_workflow_handle(handle.id)
        times = []
        run_id = handle.result_run_id
        for _ in range(3):

            async def closed(run_id: str | None = run_id) -> bool:
                run = feature.client.get_workflow_handle(handle.id, run_id=run_id)
                return (await run.describe()).status is not WorkflowExecutionStatus.RUNNING

            await until(closed)
            events = (await feature.client.get_workflow_handle(handle.id, run_id=run_id).fetch_history()).events
            times.append(events[0].event_time + events[0].attributes.first_workflow_task_backoff)
            run_id = getattr(events[-1].attributes, "new_execution_run_id", "")
        for earlier, later in pairwise(times):
            assert later > earlier and (later - earlier) % timedelta(seconds=1) == timedelta(0)
        await newest.terminate(reason="enough")
        with pytest.raises(WorkflowFailureError) as end:
            await handle.result()
        assert isinstance(end.value.cause, TerminatedError)
