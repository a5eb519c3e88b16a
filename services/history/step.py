"""Everything that can happen to a workflow execution: the table of contents of the engine.

Theory of operation
-------------------
A run is the fold of its history (``apply``). ``step`` decides what one request does to it, and returns a transition:
the next state, the events that got a number, the tasks owed to the outside, and the caller's reply. It reads no
clock, no randomness and no storage; whoever calls it commits the transition in one conditional write, or steps again
on the state that was there first. So a request is decided against exactly the state that its commit follows.

What a reader has been shown never changes, and a worker that holds a workflow task is a reader. Nobody can know whether
a scheduled task has been taken, so while one is outstanding nothing gets a number: what comes in is buffered, ends of
activities rest in their items, due timers are derived from the clock (``placement``). Taking a task writes nothing; its
signed token lists what was shown, and its completion places exactly that list, then WorkflowTaskStarted, then its own
events. A completion is valid as long as no commit after its base has numbered an event; otherwise it is refused and the
worker evicts what it computed. When no task is outstanding, a request numbers its events at once and schedules one.

Work is owed, not done: a lost dispatch, wake-up or firing is made up for by the run's one armed deadline, whose firing
always ends in a commit with the next (``deadlines``). Delivering anything twice changes nothing, since each request is
checked against the state: by request id, nonce, attempt, or by what is still pending.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from stepwell.api.errors import NotFound

from .answers import Discharge, ExternalDelivered
from .builder import TransitionBuilder, unchanged
from .machines import (
    activity,
    archiving,
    cancellation,
    closing,
    completion,
    crossing,
    deadline,
    deletion,
    importing,
    inbox,
    options,
    pausing,
    reset,
    signal,
    standalone,
    start,
    too_long,
    update,
    watching,
    with_start,
)
from .machines.run_checks import check_open, check_run
from .requests import (
    AdmitUpdate,
    CompleteWorkflowTask,
    Delete,
    Detach,
    EndLeases,
    FailWorkflowTask,
    FireDeadline,
    ImportRun,
    LeasedHeartbeat,
    Pause,
    RecordArchived,
    RecordDeleted,
    RecordFinishedActivities,
    RecordLeasedOutcomes,
    Request,
    RequestCancel,
    Reset,
    ResetAffinity,
    Signal,
    Signals,
    Start,
    StartActivity,
    Terminate,
    Unpause,
    Unwatch,
    UpdateOptions,
    UpdateWithStart,
    Watch,
)
from .state import ExecutionState
from .transition import OutcomesReply, Transition, UpdateReply

PauseT = TypeVar("PauseT", Pause, Unpause)


def step(state: ExecutionState | None, request: Request, now: datetime) -> Transition:
    """What the request does to the execution. ``state`` is the head's, None when the workflow id was never used.

    ``now`` must not be before ``state.last_event_time``. A refusal raises one of ``stepwell.api.errors`` and changes
    nothing. A transition with ``changed`` False has only a reply.
    """
    opens = OPENING.get(type(request))
    if opens is not None:
        transition = opens(state, request, now)
    elif state is None:
        raise NotFound("there is no such workflow; start it first, or check the workflow_id and namespace")
    else:
        transition = REQUESTS[type(request)](state, request, now)
    if state is None:
        return transition
    return closing.with_problems(state, too_long.within_limits(state, request, transition, now))


def _signal(state: ExecutionState, request: Signal, now: datetime) -> Transition:
    if signal.is_repeat(state, request):
        return unchanged(state)
    check_run(state, request.run_id, request.first_run_id)
    check_open(state)
    draft = TransitionBuilder(state, now)
    signal.receive(draft, request)
    inbox.settle(draft)
    return draft.finish()


def _request_cancel(state: ExecutionState, request: RequestCancel, now: datetime) -> Transition:
    """A run that is closed, or was asked already, succeeds without change (CH-09, CH-11). A repeat of what an earlier
    run was asked does not reach this one."""
    if cancellation.is_repeat(state, request):
        return unchanged(state)
    check_run(state, request.run_id, request.first_run_id)
    if state.close_time is not None or cancellation.is_requested(state):
        return unchanged(state)
    draft = TransitionBuilder(state, now)
    cancellation.request(draft, request)
    if standalone.is_one(state):
        standalone.ask_to_cancel(draft)
    else:
        inbox.settle(draft)
    return draft.finish()


def _pause(state: ExecutionState, request: Pause, now: datetime) -> Transition:
    return _changed_pause(state, request, now, pausing.pause)


def _unpause(state: ExecutionState, request: Unpause, now: datetime) -> Transition:
    return _changed_pause(state, request, now, pausing.unpause)


def _changed_pause(
    state: ExecutionState, request: PauseT, now: datetime, change: Callable[[TransitionBuilder, PauseT], None]
) -> Transition:
    if pausing.is_repeat(state, request):
        return unchanged(state)
    check_run(state, request.run_id)
    check_open(state)
    draft = TransitionBuilder(state, now)
    change(draft, request)
    inbox.settle(draft)
    return draft.finish()


def _reset_affinity(state: ExecutionState, request: ResetAffinity, now: datetime) -> Transition:
    """Nothing that a history tells."""
    check_run(state, request.run_id)
    check_open(state)
    if not state.last_worker_key:
        return unchanged(state)
    draft = TransitionBuilder(state, now)
    draft.state.last_worker_key = ""
    return draft.finish()


def _terminate(state: ExecutionState, request: Terminate, now: datetime) -> Transition:
    check_run(state, request.run_id, request.first_run_id)
    check_open(state)
    draft = TransitionBuilder(state, now)
    closing.terminate(draft, request)
    return draft.finish()


def _record_leased_outcomes(state: ExecutionState, request: RecordLeasedOutcomes, now: datetime) -> Transition:
    check_run(state, request.run_id)
    draft = TransitionBuilder(state, now)
    reply = OutcomesReply(outcome_replies=activity.record_outcomes(draft, request.outcomes))
    inbox.settle(draft)
    return draft.finish(reply) if draft.dirty else unchanged(state, reply)


def _record_finished_activities(state: ExecutionState, request: RecordFinishedActivities, now: datetime) -> Transition:
    """The wake-up behind an item's end; whoever comes later has nothing to do."""
    if request.run_id != state.run_id or state.close_time is not None:
        return unchanged(state)
    draft = TransitionBuilder(state, now)
    activity.record_finished(draft, [finished.item for finished in request.finished])
    standalone.settle(draft)
    return draft.finish() if draft.dirty else unchanged(state)


def _leased_heartbeat(state: ExecutionState, request: LeasedHeartbeat, now: datetime) -> Transition:
    """An attempt that is over has no progress; whether it is, its worker is told by who asks before."""
    if request.run_id != state.run_id or state.close_time is not None:
        return unchanged(state)
    draft = TransitionBuilder(state, now)
    return draft.finish() if activity.note_progress(draft, request) else unchanged(state)


def _end_leases(state: ExecutionState, request: EndLeases, now: datetime) -> Transition:
    if request.run_id != state.run_id or state.close_time is not None:
        return unchanged(state)
    draft = TransitionBuilder(state, now)
    activity.end_leases(draft, request.scheduled_event_ids, request.reason)
    return draft.finish() if draft.dirty else unchanged(state)


def _detach(state: ExecutionState, request: Detach, now: datetime) -> Transition:
    check_run(state, request.run_id)
    draft = TransitionBuilder(state, now)
    replies, changed = activity.detach(draft, request)
    reply = OutcomesReply(outcome_replies=replies)
    return draft.finish(reply) if changed else unchanged(state, reply)


def _record_deliveries(state: ExecutionState, request: ExternalDelivered | Discharge, now: datetime) -> Transition:
    """Answers are taken by the run that asked, wherever it stands; of one that is gone nothing is left to do."""
    draft = TransitionBuilder(state, now)
    crossing.record(draft, request.deliveries)
    inbox.settle(draft)
    return draft.finish() if draft.dirty else unchanged(state)


def _fire_deadline(state: ExecutionState, request: FireDeadline, now: datetime) -> Transition:
    if state.close_time is not None and not state.owed:
        return unchanged(state)
    return deadline.fire(TransitionBuilder(state, now), request)


OPENING: dict[type, Callable[[ExecutionState | None, Any, datetime], Transition]] = {
    Start: start.start,
    StartActivity: standalone.start,
    Signals: with_start.signals,
    UpdateWithStart: with_start.update_with_start,
    ImportRun: importing.import_run,
}
"""Requests that may come to a workflow id that was never used."""


def _admit_update(state: ExecutionState, request: AdmitUpdate, now: datetime) -> Transition:
    """An id that the run knows is the same update again (MS-28), also when the run is closed."""
    update_id = request.request.meta.update_id
    check_run(state, request.run_id, request.first_run_id)
    known = update.ended(state, update_id)
    ended_seq = request.ended_seq if known is None else known.seq
    if ended_seq or update_id in state.updates:
        return unchanged(state, UpdateReply(run_id=state.run_id, ended_seq=ended_seq))
    check_open(state)
    draft = TransitionBuilder(state, now)
    update.admit(draft, request.request)
    return draft.finish(UpdateReply(run_id=state.run_id))


REQUESTS: dict[type, Callable[[ExecutionState, Any, datetime], Transition]] = {
    CompleteWorkflowTask: completion.complete,
    FailWorkflowTask: completion.fail,
    RecordLeasedOutcomes: _record_leased_outcomes,
    RecordFinishedActivities: _record_finished_activities,
    Signal: _signal,
    AdmitUpdate: _admit_update,
    RequestCancel: _request_cancel,
    Watch: watching.watch,
    Unwatch: watching.unwatch,
    Terminate: _terminate,
    UpdateOptions: options.update,
    Delete: deletion.delete,
    RecordDeleted: deletion.record_deleted,
    RecordArchived: archiving.record,
    Pause: _pause,
    Unpause: _unpause,
    ResetAffinity: _reset_affinity,
    LeasedHeartbeat: _leased_heartbeat,
    EndLeases: _end_leases,
    Detach: _detach,
    ExternalDelivered: _record_deliveries,
    Discharge: _record_deliveries,
    Reset: reset.reset,
    FireDeadline: _fire_deadline,
}
"""With ``OPENING`` complete: a test compares them with the union of requests."""
