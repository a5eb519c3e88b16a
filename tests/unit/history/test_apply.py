"""The fold, beside what every other test checks through ``Run``: its edges."""

from typing import get_args

import msgspec
import pytest
from stepwell.api import events as e
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import TimeoutType, WorkflowExecutionStatus
from stepwell.api.events import EventAttributes, HistoryEvent
from stepwell.api.payloads import ENCODING, ENCODING_JSON, ENCODING_NULL, Payload
from stepwell.api.updates import UpdateInput, UpdateMeta, UpdateOutcome, UpdateRequest

from stepwell_server.history.apply import apply, durable_part, event_size, merged, opened, rebuild
from stepwell_server.history.state import REMEMBERED_UPDATES, ParentLink, PendingUpdate, WorkflowTaskState
from tests.support.history_run import EAGER, T0, Run, activity, done, seconds, timer


def test_a_history_begins_with_its_start():
    run = Run()
    with pytest.raises(ValueError, match="begins with WorkflowExecutionStarted"):
        rebuild(run.events[1:], "default")
    with pytest.raises(ValueError, match="begins with WorkflowExecutionStarted"):
        rebuild([], "default")
    with pytest.raises(ValueError, match="only ever a run's first event"):
        apply(run.s, run.events[0])


def test_rebuild_is_the_state_less_what_is_transient():
    run = Run()
    run.accept(activity(), timer(), eager=EAGER)
    run.signal()
    run.outcomes(done(5))
    rebuilt = rebuild(run.events, "default")
    assert rebuilt != run.s
    assert durable_part(rebuilt) == durable_part(run.s)
    assert rebuilt.history_size == sum(map(event_size, run.events))


def test_of_a_transient_task_only_its_being_there_is_durable():
    run = Run()
    run.fail_task()
    run.wait(1).fail_task()
    assert durable_part(rebuild(run.events, "default")) == durable_part(run.s)


def test_a_workflow_task_timeout_makes_the_next_attempt():
    """Not written by this release, but readable."""
    run = Run()
    timed_out = e.WorkflowTaskTimedOut(scheduled_event_id=2, timeout_type=TimeoutType.START_TO_CLOSE)
    apply(run.s, HistoryEvent(event_id=3, event_time=T0, attributes=timed_out))
    assert run.s.workflow_task.attempt == 2 and run.s.workflow_task.scheduled_event_id == 0
    run.s.workflow_task = None
    apply(run.s, HistoryEvent(event_id=4, event_time=T0, attributes=timed_out))
    assert run.s.workflow_task.attempt == 2


def test_opened_needs_no_clock():
    run = Run()
    started = run.events[0].attributes
    assert opened(run.events[0], started, "default").start_time == T0


def test_every_event_is_known_here():
    """``apply`` ends in ``assert_never``; this says that the union has not been forgotten there."""
    assert len(get_args(EventAttributes)) == 47


def test_the_shorter_of_two_timeouts_ends_a_run():
    run = Run(workflow_execution_timeout=seconds(5))
    longer = msgspec.structs.replace(run.events[0].attributes, workflow_run_timeout=seconds(9))
    assert opened(run.events[0], longer, "default").run_expires == T0 + seconds(5)


def started(run: Run, **fields: object) -> HistoryEvent:
    event = run.events[0]
    return msgspec.structs.replace(event, attributes=msgspec.structs.replace(event.attributes, **fields))


def test_a_child_knows_its_parent_and_the_root():
    run = Run()
    event = started(
        run,
        parent_workflow_namespace="default",
        parent_workflow_execution=WorkflowExecution(workflow_id="parent", run_id="p-2"),
        parent_initiated_event_id=7,
        parent_original_execution_run_id="p-1",
        root_workflow_execution=WorkflowExecution(workflow_id="root", run_id="r-1"),
    )
    state = opened(event, event.attributes, "default")
    assert state.parent == ParentLink(
        namespace="default", workflow_id="parent", run_id="p-2", initiated_event_id=7, original_run_id="p-1"
    )
    assert state.root == WorkflowExecution(workflow_id="root", run_id="r-1")
    assert run.s.parent is None and run.s.root is None


def test_a_run_made_by_a_reset_keeps_the_id_that_it_began_from():
    run = Run()
    state = rebuild(run.events, "default", "run-9")
    assert (state.run_id, state.original_run_id, state.first_run_id) == ("run-9", "run-1", "run-1")
    assert (run.s.run_id, run.s.original_run_id) == ("run-1", "")


def test_the_first_task_waits_for_its_time():
    run = Run()
    event = started(run, first_workflow_task_backoff=seconds(30), attempt=3, cron_schedule="@daily")
    state = opened(event, event.attributes, "default")
    assert state.first_task_at == T0 + seconds(30)
    assert (state.attempt, state.cron_schedule) == (3, "@daily")
    apply(state, msgspec.structs.replace(run.events[1], event_time=T0 + seconds(30)))
    assert state.first_task_at is None


def test_a_close_names_the_run_that_goes_on():
    run = Run()
    continued = e.WorkflowExecutionContinuedAsNew(
        new_execution_run_id="run-2", workflow_type="fulfil", task_queue="orders", workflow_task_completed_event_id=4
    )
    apply(run.s, HistoryEvent(event_id=3, event_time=T0, attributes=continued))
    assert run.s.status is WorkflowExecutionStatus.CONTINUED_AS_NEW
    assert run.s.new_execution_run_id == "run-2" and run.s.close_time == T0


def test_a_null_or_an_empty_list_takes_a_name_away():
    red = Payload(metadata={ENCODING: ENCODING_JSON}, data=b'"red"')
    gone = [
        Payload(metadata={ENCODING: ENCODING_NULL}),
        Payload(metadata={ENCODING: ENCODING_JSON}, data=b"null"),
        Payload(metadata={ENCODING: ENCODING_JSON}, data=b"[]"),
    ]
    values = {"colour": red, "size": red}
    assert [merged(values, {"colour": value}) for value in gone] == [{"size": red}] * 3
    assert merged(values, {"owner": red}) == {"colour": red, "size": red, "owner": red}
    assert values == {"colour": red, "size": red}


def test_only_the_newest_ended_updates_are_remembered():
    run = Run()
    for number in range(REMEMBERED_UPDATES + 1):
        request = UpdateRequest(meta=UpdateMeta(update_id=str(number)), input=UpdateInput(name="set"))
        accepted = e.WorkflowExecutionUpdateAccepted(protocol_instance_id=str(number), accepted_request=request)
        completed = e.WorkflowExecutionUpdateCompleted(
            meta=request.meta, accepted_event_id=run.s.next_event_id, outcome=UpdateOutcome()
        )
        for attributes in (accepted, completed):
            apply(run.s, HistoryEvent(event_id=run.s.next_event_id, event_time=T0, attributes=attributes))
    assert run.s.updates == {} and run.s.update_count == REMEMBERED_UPDATES + 1
    assert [ended.update_id for ended in run.s.ended_updates] == [str(n) for n in range(1, REMEMBERED_UPDATES + 1)]


def test_updates_that_the_end_cuts_off_are_remembered_as_they_were_accepted():
    """The order of their admission is not in the history (simulation, seed 60007 with updates)."""
    run = Run()
    known = run.s.updates | {"first": PendingUpdate(update_id="first")}
    run.s.updates = known
    for name in ("second", "first"):
        request = UpdateRequest(meta=UpdateMeta(update_id=name), input=UpdateInput(name="set"))
        accepted = e.WorkflowExecutionUpdateAccepted(protocol_instance_id=name, accepted_request=request)
        apply(run.s, HistoryEvent(event_id=run.s.next_event_id, event_time=T0, attributes=accepted))
    ended = e.WorkflowExecutionTerminated(reason="enough")
    apply(run.s, HistoryEvent(event_id=run.s.next_event_id, event_time=T0, attributes=ended))
    assert [ended.update_id for ended in run.s.ended_updates] == ["second", "first"]


def test_of_an_update_that_is_only_admitted_the_history_knows_nothing():
    """Nor of the workflow task that is there for it alone."""
    run = Run()
    known = durable_part(run.s)
    run.s.updates["u"] = PendingUpdate(update_id="u", index=1, admitted_time=T0)
    assert durable_part(run.s) == known
    run.s.workflow_task = WorkflowTaskState(scheduled_event_id=0, scheduled_time=T0, next_dispatch=T0)
    assert durable_part(run.s).workflow_task is None
