"""The point of a reset: a workflow task, named by one of its events or found by type (LC-13, LC-15)."""

import pytest
from stepwell.api.enums import ResetType
from stepwell.api.errors import InvalidArgument

from stepwell_server.history.machines.reset_point import PointFinder
from stepwell_server.history.requests import Worker
from tests.support.history_run import Run, activity

FIRST, LAST, BUILD = ResetType.FIRST_WORKFLOW_TASK, ResetType.LAST_WORKFLOW_TASK, ResetType.BUILD_ID
OTHER = Worker(identity="worker-2", build_id="b2", worker_key="k2")


def of_three_tasks() -> Run:
    """Workflow tasks were started by the events 3 (failed by 4), 6, 10 (build b2) and 14."""
    run = Run()
    run.fail_task()
    run.accept(activity())
    run.signal()
    run.accept(worker=OTHER)
    run.signal()
    run.accept(worker=OTHER)
    assert [event.event_id for event in run.events if event.event_type == "WorkflowTaskStarted"] == [3, 6, 11, 15]
    return run


def found(run: Run, reset_type: ResetType | None = None, event_id: int = 0, build_id: str = "") -> int:
    finder = PointFinder(reset_type, event_id, build_id)
    for event in run.events:
        if not finder.look_at(event):
            break
    return finder.last_event_id(run.s)


@pytest.mark.parametrize(
    ("event_id", "last_kept"), [(3, 3), (4, 3), (6, 6), (7, 6), (11, 11), (12, 11), (16, 15)], ids=str
)
def test_a_task_is_named_by_its_start_or_its_end(event_id: int, last_kept: int) -> None:
    assert found(of_three_tasks(), event_id=event_id) == last_kept


@pytest.mark.parametrize(("event_id", "near"), [(1, None), (2, None), (5, 4), (8, 7), (13, 12), (99, 16)], ids=str)
def test_any_other_event_is_refused_with_the_last_point_before_it(event_id: int, near: int | None) -> None:
    with pytest.raises(InvalidArgument) as refused:
        found(of_three_tasks(), event_id=event_id)
    assert refused.value.details["field"] == "workflow_task_finish_event_id"
    assert (f"the last one before it is event {near}" in str(refused.value)) == (near is not None)


def test_types() -> None:
    run = of_three_tasks()
    assert found(run, FIRST) == 6  # the first that was completed
    assert found(run, LAST) == 15
    assert found(run, BUILD, build_id="b1") == 6
    assert found(run, BUILD, build_id="b2") == 11
    with pytest.raises(InvalidArgument, match="build 'b3'"):
        found(run, BUILD, build_id="b3")


@pytest.mark.parametrize("reset_type", [FIRST, LAST])
def test_where_none_was_completed_one_that_was_started_serves(reset_type: ResetType) -> None:
    run = Run()
    with pytest.raises(InvalidArgument, match="no workflow task that was started"):
        found(run, reset_type)
    run.fail_task()
    assert found(run, reset_type) == 3
