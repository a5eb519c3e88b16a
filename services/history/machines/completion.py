"""The worker's answer to a workflow task, and the fused step (design sections 4 and 6).

A completion is refused, never rebased, when an event has been numbered since its base. The ends of leased activities
that travel with it count on their own then.
"""

from datetime import datetime, timedelta

import msgspec
from stepwell.api.commands import ContinueAsNewWorkflowExecution, RejectUpdate
from stepwell.api.enums import CompletionOutcome, WorkflowTaskFailedCause
from stepwell.api.events import WorkflowTaskCompleted, WorkflowTaskScheduled
from stepwell.api.failures import Failure, ServerFailureInfo
from stepwell.api.requests import ActivityOutcomeReply, EagerActivities

from .. import history_limits, placement
from ..activity_item import ActivityItem
from ..builder import TransitionBuilder, unchanged
from ..requests import CompleteWorkflowTask, FailWorkflowTask
from ..run_limits import RUN_LIMITS
from ..state import CompletionMark, ExecutionState
from ..task_tokens import ContinuationToken, PlacedBuffered, WorkflowTaskToken
from ..transition import CompletionReply, LeaseGranted, Transition
from . import activity, commands, inbox, succession, update, workflow_task
from .bad_command import BadCommand
from .carrying import Carrying
from .command_activity import Leasing

AHEAD = timedelta(seconds=1)
"""How far a fused step's workflow time may be ahead of the server's clock."""

MOST_BESIDE = 16
"""Activities that may be in queues or at other workers while a step is fused."""


def complete(state: ExecutionState, request: CompleteWorkflowTask, now: datetime) -> Transition:
    mark = state.completion
    if mark is not None and request.token.run_id == (mark.run_id or state.run_id):
        if mark.nonce == request.nonce:
            return unchanged(state, _again_closed(request, mark) if mark.run_id else _again(state, request, mark))
        if mark.dropped == request.nonce:
            counted = (activity.COUNTS,) * len(request.outcomes)
            dropped = CompletionReply(
                outcome=CompletionOutcome.DROPPED,
                run_id=state.run_id,
                started_event_id=state.previous_started_event_id,
                outcome_replies=counted,
            )
            return unchanged(state, dropped)
    token = request.token
    stale = _stale(state, request, now)
    if stale:
        return _refused(state, request, now, stale)
    try:
        commands.check_all(request.commands)
        if request.misfit:
            raise BadCommand(WorkflowTaskFailedCause.BAD_SEARCH_ATTRIBUTES, request.misfit)
        if request.limits is not RUN_LIMITS:
            commands.check_each(request.commands, request.limits)
        if type(token) is WorkflowTaskToken:
            return _completed(state, request, token, now)
        return _step(state, request, now)
    except BadCommand as bad:
        failure = Failure(message=bad.message, info=ServerFailureInfo(non_retryable=True))
        return _failed(state, request, now, bad.cause, failure, bad.message)


def fail(state: ExecutionState, request: FailWorkflowTask, now: datetime) -> Transition:
    """The worker could not carry the task out. The run stays open; the task is tried again with backoff."""
    stale = _stale(state, request, now)
    if stale:
        return _refused(state, request, now, stale)
    return _failed(state, request, now, request.cause, request.failure, "")


# --- valid or not -------------------------------------------------------------------------------------------------


def _stale(state: ExecutionState, request: CompleteWorkflowTask | FailWorkflowTask, now: datetime) -> str:
    """Why the workflow part does not count; empty when it does."""
    token = request.token
    if token.run_id != state.run_id:
        return f"the workflow's newest run is {state.run_id}"
    if state.close_time is not None:
        return f"the run is closed: {state.status.value}"
    if state.numbered_seq > token.base:
        return "the history has moved on"
    task = state.workflow_task
    if type(token) is WorkflowTaskToken:
        return "" if task is not None and task.attempt == token.attempt else "another attempt of the task is current"
    if task is not None:
        return "a workflow task is outstanding"
    return _stale_step(state, request, now)


def _eager(state: ExecutionState, request: CompleteWorkflowTask) -> EagerActivities | None:
    """What the worker may be given at once: nothing of a run that ends or is paused."""
    return None if state.pause is not None or commands.closes(request.commands) else request.eager


def _stale_step(state: ExecutionState, request: CompleteWorkflowTask | FailWorkflowTask, now: datetime) -> str:
    if state.pause is not None:
        return "the workflow is paused"
    if not request.outcomes:
        return "a fused step needs the end of an activity that caused it"
    for outcome in request.outcomes:
        pending = state.activities.get(outcome.scheduled_event_id)
        if pending is None or pending.lease is None or pending.attempt != outcome.attempt:
            return f"activity {outcome.scheduled_event_id} is not leased for attempt {outcome.attempt}"
    if isinstance(request, CompleteWorkflowTask):
        time = request.workflow_time
        # The workflow has seen this time as its now: it stands in the history as it is, or the step does not count.
        if time is None or time < state.last_event_time:
            return f"workflow_time is {time}; it must not be before the last event, {state.last_event_time}"
        if time > now + AHEAD:
            return f"workflow_time is {time}, ahead of the server's clock, {now}"
    return ""


def _refused(
    state: ExecutionState, request: CompleteWorkflowTask | FailWorkflowTask, now: datetime, why: str
) -> Transition:
    """STALE: nothing of the workflow part counts, the ends of leased activities do."""
    draft = TransitionBuilder(state, now)
    replies = activity.record_outcomes(draft, request.outcomes) if request.token.run_id == state.run_id else ()
    inbox.settle(draft)
    reply = CompletionReply(
        outcome=CompletionOutcome.STALE,
        run_id=request.token.run_id,
        outcome_replies=replies or tuple([_of_other_run(request.token.run_id) for _ in request.outcomes]),
        message=f"the completion does not count: {why}. Evict the cached run; its task will be offered again.",
    )
    return draft.finish(reply) if draft.dirty else unchanged(state, reply)


def _of_other_run(run_id: str) -> ActivityOutcomeReply:
    return ActivityOutcomeReply(error_code="NOT_FOUND", message=f"run {run_id} is over; drop the outcome")


def _again(state: ExecutionState, request: CompleteWorkflowTask, mark: CompletionMark) -> CompletionReply:
    """The answer to a completion that was accepted before, with the leases that are still the worker's."""
    leases = tuple(
        [
            LeaseGranted(activity_id=pending.activity_id, scheduled_event_id=pending.scheduled_event_id)
            for pending in state.activities.values()
            if pending.lease is not None
            and pending.scheduled_seq == mark.seq
            and pending.lease.worker_key == request.worker.worker_key
        ]
    )
    return CompletionReply(
        outcome=CompletionOutcome.ACCEPTED,
        run_id=state.run_id,
        seq=mark.seq,
        started_event_id=mark.started_event_id,
        next_event_id=state.next_event_id,
        history_size=state.history_size,
        suggested=history_limits.suggested(state),
        fusible=_fusible(state) and state.numbered_seq <= mark.seq,
        leases=leases,
        outcome_replies=(activity.COUNTS,) * len(request.outcomes),
    )


def _again_closed(request: CompleteWorkflowTask, mark: CompletionMark) -> CompletionReply:
    """The same for a completion that closed its run and opened the next: its worker has nothing left to do there."""
    return CompletionReply(
        outcome=CompletionOutcome.ACCEPTED,
        run_id=mark.run_id,
        seq=mark.seq,
        started_event_id=mark.started_event_id,
        outcome_replies=(activity.COUNTS,) * len(request.outcomes),
    )


def _fusible(state: ExecutionState) -> bool:
    """Whether the worker may send a fused step: it stands as long as no other commit numbers an event. With many
    activities in queues one is sure to, and a refused step costs the worker a replay of the whole history."""
    if state.workflow_task is not None or state.close_time is not None or state.pause is not None:
        return False
    activities = state.activities
    return len(activities) <= MOST_BESIDE or sum(one.lease is None for one in activities.values()) <= MOST_BESIDE


# --- accepted -----------------------------------------------------------------------------------------------------


def _completed(
    state: ExecutionState, request: CompleteWorkflowTask, token: WorkflowTaskToken, now: datetime
) -> Transition:
    draft = TransitionBuilder(state, now)
    replies = activity.record_outcomes(draft, request.outcomes)
    if commands.closes(request.commands) and _has_unseen(draft.state, request, token):
        return _refused_close(state, draft, request, token, replies)
    items = [finished.item for finished in request.finished]
    if _leaves_nothing(draft, request, token, items):
        return _dropped(draft, request, token, replies)
    started_event_id = workflow_task.record_started(draft, token, items)
    return _accepted(draft, request, started_event_id, replies)


def _leaves_nothing(
    draft: TransitionBuilder, request: CompleteWorkflowTask, token: WorkflowTaskToken, items: list[ActivityItem]
) -> bool:
    """Whether the task was there for updates alone, all were rejected, and nothing else has come in since."""
    state = draft.state
    task = state.workflow_task
    return (
        task is not None
        and workflow_task.is_for_updates(task)
        and state.completion is not None
        and update.only_rejects(state, token, request.commands)
        and not placement.unplaced(state, draft.now, items)
    )


def _dropped(
    draft: TransitionBuilder,
    request: CompleteWorkflowTask,
    token: WorkflowTaskToken,
    replies: tuple[ActivityOutcomeReply, ...],
) -> Transition:
    """The history is as if there had been no task (MS-26, MS-33)."""
    state = draft.state
    draft.shown_updates = {shown.request.meta.update_id: 0 for shown in workflow_task.delivered(state, token, ())}
    update.reject_unanswered(draft, request.commands)
    for command in request.commands:
        assert isinstance(command, RejectUpdate)
        update.reject(draft, command)
    workflow_task.drop(draft)
    update.settle(draft)
    assert state.completion is not None
    state.completion = msgspec.structs.replace(state.completion, dropped=request.nonce)
    return draft.finish(
        CompletionReply(
            outcome=CompletionOutcome.DROPPED,
            run_id=state.run_id,
            seq=state.seq,
            started_event_id=state.previous_started_event_id,
            fusible=_fusible(state),
            outcome_replies=replies,
        )
    )


def _step(state: ExecutionState, request: CompleteWorkflowTask, now: datetime) -> Transition:
    """The fused step: the activities' ends and a whole workflow task in one commit."""
    draft = TransitionBuilder(state, now)
    replies = activity.record_outcomes(draft, request.outcomes)
    if not activity.ended_as_said(draft.events, request.outcomes):
        return _refused(state, request, now, "an activity did not end as the workflow was shown (it is tried again)")
    started_event_id = _start_step_task(draft, request.workflow_time, state)
    return _accepted(draft, request, started_event_id, replies)


def _start_step_task(draft: TransitionBuilder, workflow_time: datetime | None, told: ExecutionState) -> int:
    """``told``: the state before this step, whose size the last reply told the worker; a replay must see the same."""
    state = draft.state
    scheduled = draft.record(
        WorkflowTaskScheduled(task_queue=state.task_queue, start_to_close_timeout=state.workflow_task_timeout)
    )
    started = history_limits.started(scheduled.event_id, told.history_size, history_limits.suggested(told))
    return draft.record(started, workflow_time).event_id


def _accepted(
    draft: TransitionBuilder,
    request: CompleteWorkflowTask,
    started_event_id: int,
    replies: tuple[ActivityOutcomeReply, ...],
) -> Transition:
    """Behind WorkflowTaskStarted: Completed, the commands' events, then whatever has come in unseen."""
    state = draft.state
    worker = request.worker
    task = state.workflow_task
    completed = draft.record(
        WorkflowTaskCompleted(
            scheduled_event_id=task.scheduled_event_id if task is not None else 0,
            started_event_id=started_event_id,
            identity=worker.identity,
            binary_checksum=worker.build_id,
            sdk_metadata=request.sdk_metadata,
        )
    )
    leasing = Leasing(_eager(state, request), worker, draft)
    # Before the commands: one that goes on with the next run takes the mark along.
    state.completion = CompletionMark(nonce=request.nonce, seq=state.seq, started_event_id=started_event_id)
    state.last_worker_key = worker.worker_key
    if draft.shown_updates:
        update.reject_unanswered(draft, request.commands)
    carrying = Carrying(completed.event_id, leasing, worker.identity, request.next_run)
    draft.limits = request.limits
    commands.carry_out(draft, request.commands, carrying)
    draft.woken = False
    if state.close_time is None:
        activity.number_unplaced(draft, [finished.item for finished in request.finished])
        if request.another_task:
            _go_on(draft, request)
        inbox.settle(draft)
        if state.updates:
            update.settle(draft)
    return draft.finish(
        CompletionReply(
            outcome=CompletionOutcome.ACCEPTED,
            run_id=state.run_id,
            seq=state.seq,
            started_event_id=started_event_id,
            next_event_id=state.next_event_id,
            history_size=state.history_size,
            suggested=history_limits.suggested(state),
            fusible=_fusible(state),
            leases=tuple(leasing.granted),
            outcome_replies=replies,
        )
    )


def _go_on(draft: TransitionBuilder, request: CompleteWorkflowTask) -> None:
    """The worker goes on with what takes longer than a task: another one follows, also when nothing has come in."""
    state = draft.state
    if state.workflow_task is not None:
        return
    quiet = not draft.woken
    workflow_task.schedule(draft, kept_alive=quiet, dispatched=not request.takes_task)


# --- refused closes and failures ----------------------------------------------------------------------------------


def _has_unseen(state: ExecutionState, request: CompleteWorkflowTask, token: WorkflowTaskToken) -> bool:
    """Whether a close would drop what has come in. Behind a continue-as-new the chain goes on, and messages with it."""
    if _has_unseen_events(state, request, token):
        return True
    return type(request.commands[-1]) is not ContinueAsNewWorkflowExecution and update.has_unseen(state, token)


def _has_unseen_events(state: ExecutionState, request: CompleteWorkflowTask, token: WorkflowTaskToken) -> bool:
    if not state.buffered:
        return False
    seen = {entry.index for entry in token.placed if isinstance(entry, PlacedBuffered)}
    unseen = [entry for entry in state.buffered if entry.index not in seen and inbox.wakes(entry)]
    if type(request.commands[-1]) is ContinueAsNewWorkflowExecution:
        return not all(succession.may_be_left(entry) for entry in unseen)
    return bool(unseen)


def _refused_close(
    state: ExecutionState,
    draft: TransitionBuilder,
    request: CompleteWorkflowTask,
    token: WorkflowTaskToken,
    replies: tuple[ActivityOutcomeReply, ...],
) -> Transition:
    """The first time nothing of it is written; the second, the task fails and senders are held back (MS-05, MS-06)."""
    cause = WorkflowTaskFailedCause.UNHANDLED_COMMAND
    if not _has_unseen_events(draft.state, request, token):
        cause = WorkflowTaskFailedCause.UNHANDLED_UPDATE
    message = "the close was refused: messages had come in that the workflow has not seen. Evict the cached run."
    outcome = CompletionOutcome.UNSEEN_EVENTS
    if token.refused_closes > 0:
        outcome = CompletionOutcome.FAILED
        items = [finished.item for finished in request.finished]
        started_event_id = workflow_task.record_started(draft, token, items)
        workflow_task.record_failed(draft, started_event_id, cause, identity=request.worker.identity)
        inbox.flush(draft)
        workflow_task.schedule(draft, after=draft.state.workflow_task, closing=True)
    else:
        inbox.settle(draft)
    reply = CompletionReply(outcome=outcome, run_id=state.run_id, outcome_replies=replies, message=message)
    return draft.finish(reply) if draft.dirty else unchanged(state, reply)


def _failed(
    state: ExecutionState,
    request: CompleteWorkflowTask | FailWorkflowTask,
    now: datetime,
    cause: WorkflowTaskFailedCause,
    failure: Failure,
    message: str,
) -> Transition:
    """The first failure is recorded; a transient attempt's only moves the state (ER-07)."""
    draft = TransitionBuilder(state, now)
    replies = activity.record_outcomes(draft, request.outcomes)
    token = request.token
    identity = request.worker.identity
    if isinstance(token, ContinuationToken):
        workflow_time = request.workflow_time if isinstance(request, CompleteWorkflowTask) else None
        if draft.events:
            started_event_id = _start_step_task(draft, workflow_time, state)
            workflow_task.fail_started(draft, started_event_id, cause, failure, identity)
    elif state.workflow_task is not None and (
        state.workflow_task.scheduled_event_id or workflow_task.is_for_updates(state.workflow_task)
    ):
        items = [finished.item for finished in request.finished]
        started_event_id = workflow_task.record_started(draft, token, items)
        workflow_task.fail_started(draft, started_event_id, cause, failure, identity)
        inbox.settle(draft)
    else:
        workflow_task.fail_transient(draft, cause, failure)
        inbox.settle(draft)
    reply = CompletionReply(
        outcome=CompletionOutcome.FAILED, run_id=state.run_id, outcome_replies=replies, message=message
    )
    return draft.finish(reply)
