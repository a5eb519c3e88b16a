"""What a namespace says of its runs is held to, and is never above what the engine takes (MT-04)."""

import pytest
from stepwell.api import commands as c
from stepwell.api import limits
from stepwell.api.enums import WorkflowTaskFailedCause as Cause
from stepwell.api.namespaces import NamespaceLimits
from stepwell.api.payloads import Payload

from stepwell_server.history.run_limits import RUN_LIMITS, RunLimits, run_limits
from tests.support.history_run import Run, activity

NOTE = Payload(data=b"x" * 2_000)


def test_without_limits_the_engines_hold() -> None:
    assert run_limits(NamespaceLimits(requests_per_second=5.0)) is RUN_LIMITS
    assert (
        RunLimits(
            payload_bytes=limits.MAX_PAYLOAD_BYTES,
            activities=limits.MAX_PENDING_ACTIVITIES,
            children=limits.MAX_PENDING_CHILDREN,
            signals=limits.MAX_PENDING_EXTERNAL_SIGNALS,
            cancels=limits.MAX_PENDING_EXTERNAL_CANCELS,
        )
        == RUN_LIMITS
    )


def test_a_limit_above_the_engines_raises_nothing() -> None:
    asked = NamespaceLimits(max_pending_children=5_000, max_pending_signals=7, max_pending_activities=1)
    assert run_limits(asked) == RunLimits(signals=7, activities=1)


def test_a_run_has_so_many_activities_and_is_told_the_way_out() -> None:
    run = Run()
    reply = run.complete(activity("1"), activity("2"), activity("3"), limits=RunLimits(activities=2))
    assert reply.outcome == "FAILED" and run.events[-1].attributes.cause is Cause.PENDING_ACTIVITIES_LIMIT_EXCEEDED
    assert "wait for some to end first, or have the limit of the namespace raised" in reply.message
    run.accept(activity("1"), activity("2"), limits=RunLimits(activities=2))


@pytest.mark.parametrize(
    "command",
    [
        c.CompleteWorkflowExecution(result=(NOTE,)),
        c.RecordMarker(marker_name="m", details={"data": NOTE}),
        c.ModifyWorkflowProperties(upserted_memo={"note": NOTE}),
        c.UpsertWorkflowSearchAttributes(search_attributes={"A": NOTE}),
        c.StartChildWorkflowExecution(workflow_id="c", workflow_type="t", task_queue="q", input=(NOTE,)),
        c.ContinueAsNewWorkflowExecution(workflow_type="t", task_queue="q", input=(NOTE,)),
        c.ScheduleActivityTask(activity_id="1", activity_type="t", task_queue="q", input=(NOTE,)),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_code_says_is_no_larger_than_the_namespace_takes(command: c.Command) -> None:
    run = Run()
    reply = run.complete(command, limits=RunLimits(payload_bytes=1_999))
    assert reply.outcome == "FAILED" and run.events[-1].attributes.cause is Cause.PAYLOADS_TOO_LARGE
    assert f"{type(command).__name__} has 20" in reply.message and "at most 1999 are taken" in reply.message
