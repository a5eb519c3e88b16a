"""What schedules start is held to what callers are held to."""

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.errors import InvalidArgument
from stepwell.api.payloads import Payload

from tests.support.scheduled import schedule, scheduled


@pytest.mark.parametrize("name", ["StepwellScheduledById", "StepwellChangeVersion", "StepwellSomething"])
async def test_what_the_system_sets_on_runs_is_refused_of_others(name: str) -> None:
    """Else a run would be found as one that a schedule has started."""
    mine = {name: Payload(metadata={"encoding": "json/plain", "type": "Keyword"}, data=b'"mine"')}
    start = r.StartWorkflowRequest(
        namespace="n", workflow_id="w", workflow_type="t", task_queue="q", search_attributes=mine
    )
    given = schedule()
    action = msgspec.structs.replace(given.action.start_workflow, search_attributes=mine)
    given = msgspec.structs.replace(given, action=msgspec.structs.replace(given.action, start_workflow=action))
    async with scheduled() as s:
        for refused in (
            s.engine.start_workflow(start),
            s.create(schedule=given),
            s.create(search_attributes=mine),
        ):
            with pytest.raises(InvalidArgument, match=f"'{name}' is one that the system itself sets"):
                await refused
        assert await s.started() == []
