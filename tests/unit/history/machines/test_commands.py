"""Commands as a whole, closes and markers."""

from datetime import timedelta

import pytest
from stepwell.api import commands as c
from stepwell.api import limits
from stepwell.api.enums import WorkflowTaskFailedCause as Cause
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payload

from tests.support.history_run import Run, activity, payload

LARGE = (Payload(data=b"x" * (limits.MAX_PAYLOAD_BYTES + 1)),)
LARGE_FAILURE = Failure(message="x" * (limits.MAX_PAYLOAD_BYTES + 1))


def refused(*commands):
    run = Run()
    reply = run.complete(*commands)
    return run.events[-1].attributes.cause, reply.message


@pytest.mark.parametrize(
    ("command", "event"),
    [
        (c.CompleteWorkflowExecution(result=payload()), "WorkflowExecutionCompleted"),
        (c.FailWorkflowExecution(failure=Failure(message="m")), "WorkflowExecutionFailed"),
        (c.CancelWorkflowExecution(details=payload()), "WorkflowExecutionCanceled"),
    ],
)
def test_closes(command, event):
    run = Run()
    run.accept(command)
    assert run.kinds[-1] == event and run.events[-1].attributes.workflow_task_completed_event_id == 4
    assert run.s.close_time == run.now


def test_marker():
    run = Run()
    run.accept(c.RecordMarker(marker_name="m", details={"d": payload()[0]}, failure=Failure(message="f")))
    marker = run.events[-1].attributes
    assert (marker.marker_name, marker.details, marker.failure) == ("m", {"d": payload()[0]}, Failure(message="f"))


def test_a_marker_may_have_several_values_for_a_name():
    run = Run()
    values = {"none": (), "two": (*payload("a"), *payload("b"))}
    run.accept(c.RecordMarker(marker_name="m", several=values, headers={"h": payload()[0]}))
    marker = run.events[-1].attributes
    assert (marker.several, marker.headers) == (values, {"h": payload()[0]})


@pytest.mark.parametrize(
    ("commands", "cause"),
    [
        ([c.CompleteWorkflowExecution(result=LARGE)], Cause.PAYLOADS_TOO_LARGE),
        ([c.CancelWorkflowExecution(details=LARGE)], Cause.PAYLOADS_TOO_LARGE),
        ([c.FailWorkflowExecution(failure=LARGE_FAILURE)], Cause.PAYLOADS_TOO_LARGE),
        ([c.RecordMarker(marker_name="m", details={"d": LARGE[0]})], Cause.PAYLOADS_TOO_LARGE),
        ([c.RecordMarker(marker_name="m", several={"d": LARGE})], Cause.PAYLOADS_TOO_LARGE),
        ([c.RecordMarker(marker_name="m", headers={"d": LARGE[0]})], Cause.PAYLOADS_TOO_LARGE),
        ([c.RecordMarker(marker_name="m", failure=LARGE_FAILURE)], Cause.PAYLOADS_TOO_LARGE),
        ([c.RecordMarker(marker_name="")], Cause.BAD_RECORD_MARKER_ATTRIBUTES),
        ([c.CompleteWorkflowExecution(), c.RecordMarker(marker_name="m")], Cause.UNHANDLED_COMMAND),
        ([c.RecordMarker(marker_name="m")] * (limits.MAX_COMMANDS_PER_TASK + 1), Cause.COMMANDS_LIMIT_EXCEEDED),
    ],
)
def test_bad(commands, cause):
    assert refused(*commands)[0] is cause


def activities(count: int, size: int) -> list[c.Command]:
    return [activity(str(number), input=(Payload(data=b"x" * size),)) for number in range(count)]


def test_all_together_are_too_large():
    others = [
        c.RecordMarker(marker_name="m", details={"d": payload()[0]}, failure=Failure(message="f")),
        c.StartTimer(timer_id="1", start_to_fire_timeout=timedelta(seconds=1)),
    ]
    for last in (
        c.CompleteWorkflowExecution(result=payload()),
        c.CancelWorkflowExecution(details=payload()),
        c.FailWorkflowExecution(failure=Failure(message="f")),
    ):
        named, said = refused(*others, *activities(4, limits.MAX_TRANSITION_BYTES // 4), last)
        assert named is Cause.PAYLOADS_TOO_LARGE and f"at most {limits.MAX_TRANSITION_BYTES}" in said


def test_all_together_fit():
    """Counted is what the user sends, not what it grows to in the events (WC-27)."""
    run = Run()
    run.accept(*activities(4, limits.MAX_TRANSITION_BYTES // 4))
    assert run.kinds[-4:] == ["ActivityTaskScheduled"] * 4
