"""LC-04: changes of a run's options are nothing to its code, wherever they stand in the history."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from stepwell import workflow
from stepwell.api import events as ev
from stepwell.api.commands import CompleteWorkflowExecution
from stepwell.replay.run import TaskResult
from stepwell.worker.replay_slices import slices

from tests.support.histories import Driver, payloads

UPDATED = ev.WorkflowExecutionOptionsUpdated(attached_request_id="met")
TIMEOUT = timedelta(seconds=10)


@workflow.defn
class Lengths:
    """What a run can see of where it stands."""

    def __init__(self) -> None:
        self.lengths: list[int] = []

    @workflow.query
    def seen(self) -> list[int]:
        return self.lengths

    @workflow.run
    async def run(self) -> str:
        for _ in range(3):
            await workflow.execute_activity("charge", start_to_close_timeout=TIMEOUT)
            self.lengths.append(workflow.info().get_current_history_length())
        workflow.patched("late")
        return "done"


class Met(Driver):
    """While a task is out, a start meets the run: its event is numbered behind the task, or before the run's close."""

    def __init__(self) -> None:
        super().__init__(Lengths)
        completed: Callable[[TaskResult], None] = self.history.task_completed

        def with_options(result: TaskResult) -> None:
            completed(result)
            events = self.history.events
            closing = isinstance(result.commands[-1], CompleteWorkflowExecution)
            last = events.pop() if closing else None
            self.history.add(UPDATED)
            if last is not None:
                self.history.add(last.attributes)

        self.history.task_completed = with_options  # type: ignore[method-assign]


@pytest.mark.parametrize("steps", [True, False])
def test_a_replay_sees_what_the_run_saw(steps: bool) -> None:
    d = Met()
    d.task()
    for _ in range(3):
        if steps:
            d.step("charge")
        else:
            d.history.activity_completed("charge")
            d.history.add(UPDATED)
            d.task()
    kinds = [event.event_type for event in d.history.events]
    assert kinds[-4:] == [
        "MarkerRecorded",
        "UpsertWorkflowSearchAttributes",
        "WorkflowExecutionOptionsUpdated",
        "WorkflowExecutionCompleted",
    ]
    assert d.value() == "done"
    live = d.run.query("seen")
    ends = [event.event_id for event in d.history.events if isinstance(event.attributes, ev.ActivityTaskCompleted)]
    assert live == payloads([end + (2 if steps else 3) for end in ends])
    assert d.replay().query("seen") == live


@pytest.mark.parametrize("size", range(1, 12))
def test_slices_of_such_a_history_lead_to_the_same(size: int) -> None:
    d = Met()
    d.task()
    for _ in range(3):
        d.step("charge")
    run = d.new_run()
    for part in slices(d.history.events, size):
        run.run_task(part)
    assert run.query("seen") == d.run.query("seen")
