"""Commands as a whole, closes and markers."""

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


@pytest.mark.parametrize(
    ("commands", "cause"),
    [
        ([c.CompleteWorkflowExecution(result=LARGE)], Cause.PAYLOADS_TOO_LARGE),
        ([c.CancelWorkflowExecution(details=LARGE)], Cause.PAYLOADS_TOO_LARGE),
        ([c.FailWorkflowExecution(failure=LARGE_FAILURE)], Cause.PAYLOADS_TOO_LARGE),
        ([c.RecordMarker(marker_name="m", details={"d": LARGE[0]})], Cause.PAYLOADS_TOO_LARGE),
        ([c.RecordMarker(marker_name="m", failure=LARGE_FAILURE)], Cause.PAYLOADS_TOO_LARGE),
        ([c.RecordMarker(marker_name="")], Cause.BAD_RECORD_MARKER_ATTRIBUTES),
        ([c.CompleteWorkflowExecution(), c.RecordMarker(marker_name="m")], Cause.UNHANDLED_COMMAND),
        ([c.RecordMarker(marker_name="m")] * (limits.MAX_COMMANDS_PER_TASK + 1), Cause.COMMANDS_LIMIT_EXCEEDED),
    ],
)
def test_bad(commands, cause):
    assert refused(*commands)[0] is cause


def test_all_together_are_too_large():
    part = (Payload(data=b"x" * (limits.MAX_PAYLOAD_BYTES // 2)),)
    named, said = refused(*(activity(str(number), input=part) for number in range(4)))
    assert named is Cause.PAYLOADS_TOO_LARGE and str(limits.MAX_TRANSITION_BYTES) in said
