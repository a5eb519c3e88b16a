"""The debt of a close to the archive: what it covers, when it is due, how it is paid."""

from datetime import timedelta

from stepwell.api.commands import ContinueAsNewWorkflowExecution

from stepwell_server.history.machines import archiving
from stepwell_server.history.requests import Delete, FireDeadline, RecordArchived, Terminate
from stepwell_server.history.state import ExecutionState, OwedArchive, OwedDeletion
from stepwell_server.history.step import step
from stepwell_server.history.tasks import ArchiveRuns, DeleteRun
from stepwell_server.history.transition import Transition
from tests.support.history_run import Run

AFTER = timedelta(minutes=5)
END = Terminate(run_id="")


def closed() -> tuple[ExecutionState, Transition, Run]:
    run = Run()
    return run.s, step(run.s, END, run.now), run


def owing() -> tuple[ExecutionState, Run]:
    before, transition, run = closed()
    return archiving.owe(before, transition, END, run.now, AFTER).state, run


def test_a_close_owes_its_archive_and_arms_it():
    before, transition, run = closed()
    after = archiving.owe(before, transition, END, run.now, AFTER)
    state = after.state
    entry = archiving.owed_archive(state)
    assert entry == OwedArchive(after_seq=state.seq - 1, upto_seq=state.seq, next_dispatch=run.now + AFTER)
    assert after.owes and after.deadline is not None and after.deadline <= run.now + AFTER
    assert state.armed is not None and state.armed <= run.now + AFTER
    assert archiving.awaits(state, state.numbered_seq) and not archiving.awaits(state, state.numbered_seq - 1)
    # A write behind a close closes nothing more.
    again = step(state, RecordArchived(upto_seq=state.seq), run.now)
    assert archiving.owe(state, again, RecordArchived(upto_seq=state.seq), run.now, AFTER) is again


def test_a_run_that_ends_by_being_deleted_owes_nothing():
    run = Run()
    transition = step(run.s, Delete(run_id=""), run.now)
    assert archiving.owe(run.s, transition, Delete(run_id=""), run.now, AFTER) is transition


def test_a_firing_that_closes_at_the_armed_time_arms_anew():
    before, transition, run = closed()
    armed = transition.state.armed
    assert armed is not None
    request = FireDeadline(fire_at=armed)
    after = archiving.owe(before, transition, request, run.now, AFTER)
    assert after.arm == run.now + AFTER == after.state.armed


def test_its_deadline_asks_again_and_again():
    state, _ = owing()
    entry = archiving.owed_archive(state)
    assert entry is not None
    fired = step(state, FireDeadline(fire_at=entry.next_dispatch), entry.next_dispatch)
    assert fired.tasks == (ArchiveRuns(),)
    later = archiving.owed_archive(fired.state)
    assert later is not None and later.dispatches == 1 and later.next_dispatch > entry.next_dispatch
    assert fired.deadline == later.next_dispatch and fired.arm is not None


def test_a_chain_has_one_debt_that_is_paid_up_to_a_close():
    run = Run()
    before = run.s
    run.accept(ContinueAsNewWorkflowExecution(workflow_type="order", task_queue="q"))
    one = archiving.owe(before, run.last, END, run.now, AFTER).state
    two = archiving.owe(one, step(one, END, run.now), END, run.now, AFTER).state
    assert [type(entry) for entry in two.owed] == [OwedArchive]
    assert archiving.awaits(two, one.seq) and archiving.awaits(two, two.seq)
    paid = step(two, RecordArchived(upto_seq=one.seq), run.now).state
    assert not archiving.awaits(paid, one.seq) and archiving.awaits(paid, two.seq)
    assert not step(paid, RecordArchived(upto_seq=one.seq), run.now).changed
    assert step(paid, RecordArchived(upto_seq=two.seq), run.now).state.owed == ()


def test_a_deletion_hurries_the_archive_and_is_asked_for_behind_it():
    state, run = owing()
    deleting = step(state, Delete(run_id=""), run.now)
    assert set(deleting.tasks) == {ArchiveRuns(), DeleteRun(run_id=state.run_id)}
    entry = archiving.owed_archive(deleting.state)
    assert entry is not None and entry.next_dispatch == run.now
    paid = step(deleting.state, RecordArchived(upto_seq=entry.upto_seq), run.now)
    assert paid.tasks == (DeleteRun(run_id=state.run_id),)
    assert [type(left) for left in paid.state.owed] == [OwedDeletion]
