"""Batches of activities without a workflow (LC-43, AC-28)."""

from datetime import timedelta

import pytest
from stepwell.api import requests as r
from stepwell.api.batches import BatchCancelActivities, BatchDeleteActivities, BatchTerminateActivities
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import InvalidArgument, NotFound

from tests.integration.batcher.places import Place, embedded


async def test_every_operation_of_standalone_activities() -> None:
    async with embedded() as place:
        await _every_operation(place)


async def _every_operation(place: Place) -> None:
    named = tuple([WorkflowExecution(workflow_id=f"order-{number}") for number in range(4)])
    for one in named:
        await place.engine.start_activity(
            r.StartActivityRequest(
                activity_id=one.workflow_id,
                activity_type="order",
                task_queue="nobody",
                start_to_close_timeout=timedelta(minutes=1),
            )
        )

    async def statuses() -> list[str]:
        asked = [r.DescribeActivityRequest(activity_id=one.workflow_id) for one in named]
        return [(await place.engine.describe_activity(each)).info.status.value for each in asked]

    await place.batch(BatchCancelActivities(), named[:1], "cancel", reason="enough")
    assert (await place.over("cancel")).info.complete_operation_count == 1
    # Its end is its item's, and comes behind the request.
    poll = r.PollActivityRequest(activity_id=named[0].workflow_id, timeout=timedelta(seconds=30))
    assert (await place.engine.poll_activity(poll)).outcome is not None
    await place.batch(BatchTerminateActivities(), named[:2], "end")
    assert (await place.over("end")).info.complete_operation_count == 2, "what has ended counts as done"
    await place.batch(BatchTerminateActivities(), query="ActivityType = 'order'", job_id="rest")
    found = await place.over("rest")
    assert found.info.complete_operation_count == found.info.total_operation_count
    assert await statuses() == ["CANCELED", "TERMINATED", "TERMINATED", "TERMINATED"]
    missing = WorkflowExecution(workflow_id="nobody's")
    await place.batch(BatchDeleteActivities(), [*named, missing], "delete")
    gone = (await place.over("delete")).info
    assert (gone.complete_operation_count, gone.failure_operation_count) == (4, 1)
    with pytest.raises(NotFound):
        await statuses()
    with pytest.raises(InvalidArgument, match="no search attribute 'WorkflowType'"):
        await place.batch(BatchDeleteActivities(), query="WorkflowType = 'order'", job_id="wrong")
