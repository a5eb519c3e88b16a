"""Answers of workflow code to updates that its task has not shown: a named cause, and nothing counts (ER-08)."""

import pytest
from stepwell.api import commands as c
from stepwell.api.enums import WorkflowTaskFailedCause as Cause
from stepwell.api.failures import Failure
from stepwell.api.updates import UpdateOutcome

from tests.support.history_run import Run, timer

COMMANDS = [
    c.AcceptUpdate(update_id="never"),
    c.RejectUpdate(update_id="never", failure=Failure(message="no")),
    c.CompleteUpdate(update_id="never", outcome=UpdateOutcome()),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_bad(command):
    run = Run()
    reply = run.complete(timer("1", 5), command)
    assert run.events[-1].attributes.cause is Cause.BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE
    assert "'never'" in reply.message and "once" in reply.message and not run.s.timers
