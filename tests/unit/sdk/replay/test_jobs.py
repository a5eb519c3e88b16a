"""The tables over the union of events: nothing that the engine records is forgotten, or meant in two ways."""

import typing
from collections import Counter

import pytest
from stepwell import workflow
from stepwell.api import events as ev
from stepwell.api.common import WorkflowExecution
from stepwell.api.updates import UpdateRequest
from stepwell.replay import activation
from stepwell.replay.errors import WorkflowTaskError
from stepwell.replay.jobs import JOBS

from tests.support.histories import Driver


@workflow.defn
class Waits:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)


def test_every_event_has_exactly_one_place_in_replay() -> None:
    places = Counter(
        [
            *(JOBS.keys() - {UpdateRequest}),  # comes with its workflow task
            *activation.COMMAND_EVENTS,
            *activation._IGNORED,
            *activation._TASK_ENDS,
            ev.WorkflowTaskStarted,
        ]
    )
    assert places == Counter(typing.get_args(ev.EventAttributes))


def test_an_event_that_cannot_be_replayed_fails_the_task_by_name() -> None:
    driver = Driver(Waits)
    driver.task()
    driver.history.add(
        ev.ExternalWorkflowExecutionSignaled(
            initiated_event_id=5, workflow_execution=WorkflowExecution(workflow_id="other")
        )
    )
    with pytest.raises(WorkflowTaskError, match=r"ExternalWorkflowExecutionSignaled event.*newer release"):
        driver.task()
