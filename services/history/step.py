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

from datetime import datetime
from typing import assert_never

from stepwell.api.errors import ApiError, NotFound, WorkflowExecutionClosed

from .builder import TransitionBuilder, unchanged
from .machines import activity, cancellation, closing, completion, crossing, deadline, inbox, signal, start
from .requests import (
    CompleteWorkflowTask,
    Discharge,
    EndLeases,
    ExternalDelivered,
    FailWorkflowTask,
    FireDeadline,
    LeasedHeartbeat,
    RecordFinishedActivities,
    RecordLeasedOutcomes,
    Request,
    RequestCancel,
    Signal,
    Signals,
    Start,
    Terminate,
)
from .state import ExecutionState
from .transition import OutcomesReply, SignalsReply, Transition


def step(state: ExecutionState | None, request: Request, now: datetime) -> Transition:  # noqa: C901, PLR0912 - a table
    """What the request does to the execution. ``state`` is the head's, None when the workflow id was never used.

    ``now`` must not be before ``state.last_event_time``. A refusal raises one of ``stepwell.api.errors`` and changes
    nothing. A transition with ``changed`` False has only a reply.
    """
    if isinstance(request, Start):
        return start.start(state, request, now)
    if state is None:
        raise NotFound("there is no such workflow; start it first, or check the workflow_id and namespace")
    match request:
        case CompleteWorkflowTask():
            return completion.complete(state, request, now)
        case FailWorkflowTask():
            return completion.fail(state, request, now)
        case RecordLeasedOutcomes():
            return _record_leased_outcomes(state, request, now)
        case RecordFinishedActivities():
            return _record_finished_activities(state, request, now)
        case Signal():
            return _signal(state, request, now)
        case Signals():
            return _signals(state, request, now)
        case RequestCancel():
            return _request_cancel(state, request, now)
        case Terminate():
            return _terminate(state, request, now)
        case LeasedHeartbeat():
            return _leased_heartbeat(state, request, now)
        case EndLeases():
            return _end_leases(state, request, now)
        case ExternalDelivered() | Discharge():
            return _record_deliveries(state, request, now)
        case FireDeadline():
            return _fire_deadline(state, request, now)
        case _:
            assert_never(request)


def _signal(state: ExecutionState, request: Signal, now: datetime) -> Transition:
    if signal.is_repeat(state, request):
        return unchanged(state)
    _check_run(state, request.run_id)
    _check_open(state)
    draft = TransitionBuilder(state, now)
    signal.receive(draft, request)
    inbox.settle(draft)
    return draft.finish()


def _signals(state: ExecutionState, request: Signals, now: datetime) -> Transition:
    """Each signal as if it came alone; one that is refused does not hold up the others."""
    draft = TransitionBuilder(state, now)
    refusals: list[ApiError | None] = []
    for asked in request.signals:
        try:
            if not signal.is_repeat(draft.state, asked):
                _check_run(state, asked.run_id)
                _check_open(state)
                signal.receive(draft, asked)
                inbox.settle(draft)
            refusals.append(None)
        except ApiError as refusal:
            refusals.append(refusal)
    reply = SignalsReply(refusals=tuple(refusals))
    return draft.finish(reply) if draft.dirty else unchanged(state, reply)


def _request_cancel(state: ExecutionState, request: RequestCancel, now: datetime) -> Transition:
    """A run that is closed, or was asked already, succeeds without change (CH-09, CH-11). A repeat of what an earlier
    run was asked does not reach this one."""
    if cancellation.is_repeat(state, request):
        return unchanged(state)
    _check_run(state, request.run_id, request.first_run_id)
    if state.close_time is not None or cancellation.is_requested(state):
        return unchanged(state)
    draft = TransitionBuilder(state, now)
    cancellation.request(draft, request)
    inbox.settle(draft)
    return draft.finish()


def _terminate(state: ExecutionState, request: Terminate, now: datetime) -> Transition:
    _check_run(state, request.run_id, request.first_run_id)
    _check_open(state)
    draft = TransitionBuilder(state, now)
    closing.terminate(draft, request)
    return draft.finish()


def _record_leased_outcomes(state: ExecutionState, request: RecordLeasedOutcomes, now: datetime) -> Transition:
    _check_run(state, request.run_id)
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
    inbox.settle(draft)
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


def _check_run(state: ExecutionState, run_id: str, first_run_id: str = "") -> None:
    """The newest run is meant. An older one is closed, or there is none; only who can read the log can tell."""
    if run_id and run_id != state.run_id:
        raise NotFound(
            f"run {run_id} of workflow {state.workflow_id!r} is not its newest run, which is {state.run_id}; "
            "leave run_id out to mean the newest",
            run_id=state.run_id,
        )
    if first_run_id and first_run_id != state.first_run_id:
        raise NotFound(
            f"workflow {state.workflow_id!r} is now in a chain that began with run {state.first_run_id}, "
            f"not {first_run_id}",
            run_id=state.run_id,
        )


def _check_open(state: ExecutionState) -> None:
    if state.close_time is not None:
        raise WorkflowExecutionClosed(
            f"run {state.run_id} of workflow {state.workflow_id!r} is closed ({state.status.value}); "
            "start a new run if there is still work",
            status=state.status.value,
        )
