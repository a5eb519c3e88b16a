"""When the simulation says that a state needs a deadline."""

from stepwell.api.commands import SignalExternalWorkflowExecution
from stepwell.api.common import WorkflowExecution

from stepwell_server.history.answers import Delivery, ExternalDelivered
from tests.simulation.needs import earliest_need
from tests.support.history_run import T0, Run, seconds

SHIP = SignalExternalWorkflowExecution(execution=WorkflowExecution(workflow_id="order-2"), signal_name="ship")


def asked() -> Run:
    run = Run()
    run.accept(SHIP)
    return run


def test_what_is_asked_of_others_needs_one_until_it_is_answered():
    run = asked()
    assert earliest_need(run.s, T0) == T0 + seconds(30)
    run.wait(10).signal()
    answer = Delivery(
        run_id="run-1", initiated_event_id=5, workflow_task_completed_event_id=4, execution=SHIP.execution
    )
    run.step(ExternalDelivered(deliveries=(answer,)))
    assert earliest_need(run.s, run.now) == run.now + seconds(30), "buffered: only the workflow task is waited for"


def test_a_closed_run_needs_one_while_it_owes():
    run = asked()
    run.terminate()
    assert earliest_need(run.s, run.now) == T0 + seconds(30)
    run.start("run-2")
    assert earliest_need(run.s, run.now) == T0 + seconds(30)


def test_a_closed_run_that_owes_nothing_needs_none():
    run = Run()
    run.terminate()
    assert earliest_need(run.s, run.now) is None
