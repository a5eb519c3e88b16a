"""What is told of a run that is not well."""

import msgspec
from stepwell.api.enums import TimeoutType, WorkflowTaskFailedCause
from stepwell.api.events import WorkflowExecutionFailed, WorkflowExecutionTimedOut
from stepwell.api.failures import ActivityFailureInfo, ApplicationFailureInfo, Failure, TimeoutFailureInfo

from stepwell_server.history import problems
from stepwell_server.history.problems import FAILING_ACTIVITY, FAILURE_CAUSE, Problems
from stepwell_server.visibility.attributes import MANAGED, ValueType
from tests.support.sample_commits import SampleRun

OPEN = list(SampleRun(1).commits())[1].state
DECLINED = Failure(message="no", info=ApplicationFailureInfo(failure_type="Declined"))


def told(found: Problems) -> dict[str, list[str]]:
    return {name: msgspec.json.decode(payload.data) for name, payload in found.attributes().items()}


def test_a_run_that_is_well_tells_nothing() -> None:
    assert problems.of_state(OPEN) == problems.NONE and problems.NONE.attributes() == {}


def test_workflow_tasks_that_fail() -> None:
    state = next(SampleRun(1).commits()).state
    assert state.workflow_task is not None
    task = msgspec.structs.replace(
        state.workflow_task,
        attempt=2,
        last_cause=WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR,
        last_failure=Failure(message="x", info=ApplicationFailureInfo(failure_type="NondeterminismError")),
    )
    failing = msgspec.structs.replace(state, workflow_task=task)
    assert told(problems.of_state(failing)) == {FAILURE_CAUSE: ["NON_DETERMINISTIC_ERROR", "NondeterminismError"]}
    assert problems.have_changed(state, failing) and problems.have_changed(failing, state)
    again = msgspec.structs.replace(failing, workflow_task=msgspec.structs.replace(task, attempt=3))
    assert not problems.have_changed(failing, again)


def test_activities_that_fail() -> None:
    (number, pending), *_ = OPEN.activities.items()
    activities = {
        number + index: msgspec.structs.replace(pending, activity_type=f"type {index}", last_failure=DECLINED)
        for index in range(15)
    }
    failing = msgspec.structs.replace(OPEN, activities=activities)
    found = told(problems.of_state(failing))
    assert found == {FAILING_ACTIVITY: [f"type {index}" for index in range(10)], FAILURE_CAUSE: ["Declined"]}
    assert problems.have_changed(OPEN, failing)


def test_how_a_run_ended() -> None:
    timeout = Failure(message="late", info=TimeoutFailureInfo(timeout_type=TimeoutType.HEARTBEAT), cause=DECLINED)
    info = ActivityFailureInfo(scheduled_event_id=5, activity_type="charge_card", activity_id="1")
    failed = WorkflowExecutionFailed(
        failure=Failure(message="a", info=info, cause=timeout), workflow_task_completed_event_id=9
    )
    before = Problems((), ("NON_DETERMINISTIC_ERROR",))
    found = told(problems.of_end(before, failed))
    assert found == {FAILING_ACTIVITY: ["charge_card"], FAILURE_CAUSE: ["HEARTBEAT_TIMEOUT", "Declined"]}
    assert problems.of_end(before, WorkflowExecutionTimedOut()) == before


def test_queries_know_the_names() -> None:
    assert MANAGED[FAILING_ACTIVITY] is MANAGED[FAILURE_CAUSE] is ValueType.KEYWORD_LIST
