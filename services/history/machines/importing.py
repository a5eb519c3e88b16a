"""Import: a history from elsewhere becomes a run of the workflow id, in the one commit that opens it (LC-46).

A closed run is there to be read. An open one goes on as if its installation had been down since its last event: what is
pending is dispatched anew, timers that are due fire, timeouts count from when they began. What a history does not tell
begins again: attempts of activities at the first, messages that nobody had seen are not there.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from stepwell.api.errors import FailedPrecondition, InvalidArgument, WorkflowExecutionAlreadyStarted
from stepwell.api.events import (
    HistoryEvent,
    WorkflowExecutionPaused,
    WorkflowExecutionStarted,
    WorkflowExecutionUnpaused,
    WorkflowTaskCompleted,
    WorkflowTaskFailed,
)

from .. import problems, request_ids
from ..apply import FIRST_REDISPATCH
from ..apply_pending import FIRST_LOOK_AT_CHILD
from ..builder import TransitionBuilder, unchanged
from ..deadlines import asked_of_others
from ..lawful import WAKES, HistoryRules
from ..requests import ImportRun
from ..state import ExecutionState, Pause, PendingChild
from ..tasks import DispatchActivityTask, DispatchWorkflowTask
from ..transition import StartReply, Transition
from ..violations import Violation
from . import activity, closing, crossing, inbox, workflow_task

_replace = msgspec.structs.replace

_AS_READ = "give the history as it was read, from its first event on; a repeat does not help"


def run_id_of(events: Sequence[HistoryEvent]) -> str:
    """Whose history this is: a reset makes another run of it. Raises InvalidArgument."""
    first = events[0].attributes if events else None
    if not isinstance(first, WorkflowExecutionStarted):
        raise InvalidArgument(
            f"events do not begin with WorkflowExecutionStarted, so they are no history; {_AS_READ}", field="events"
        )
    run_id = first.original_execution_run_id
    for event in events:
        if isinstance(event.attributes, WorkflowTaskFailed) and event.attributes.new_run_id:
            run_id = event.attributes.new_run_id
    return run_id


class Check:
    """That events, given in order, are a history which an engine may have written. Raises InvalidArgument."""

    def __init__(self) -> None:
        self._rules = HistoryRules()

    def add(self, events: Iterable[HistoryEvent]) -> None:
        try:
            for event in events:
                self._rules.add(event)
        except Violation as broken:
            raise _refused(broken) from None

    def end(self) -> None:
        """There are no more."""
        try:
            self._rules.end_of_commit(outstanding=True)
        except Violation as broken:
            raise _refused(broken) from None


def _refused(broken: Violation) -> InvalidArgument:
    return InvalidArgument(f"events break the rules of a history: {broken}; {_AS_READ}", field="events")


def import_run(head: ExecutionState | None, request: ImportRun, now: datetime) -> Transition:
    """Raises WorkflowExecutionAlreadyStarted beside an open run, FailedPrecondition behind a later one."""
    if head is not None:
        known = request_ids.started(head, request.request_id)
        if known is not None:
            return unchanged(head, StartReply(run_id=known.run_id, first_run_id=known.first_run_id, started=False))
        _check_head(head, request)
    draft = TransitionBuilder.importing(head, request.events[0], request.namespace, request.run_id, now)
    state = draft.state
    for event in request.events[1:-1]:
        draft.record_as_shown(event)
    last = request.events[-1]
    wrong = problems.of_state(state)
    if len(request.events) > 1:
        draft.record_as_shown(last)
    draft.now = max(now, state.last_event_time)
    request_ids.remember_start(state, request.request_id, request.run_id)
    if state.parent is not None and state.parent.namespace not in ("", request.namespace):
        state.parent = None  # who waits in another namespace waits for the run there
    state.callbacks = ()  # as does who is to be called: by that run, not by this copy
    if state.close_time is not None:
        badly = type(last.attributes) in closing.ENDS_BADLY
        draft.tasks.append(
            closing.visibility(state, problems.of_end(wrong, last.attributes) if badly else problems.NONE)
        )
    else:
        _go_on(draft, request.events)
    return draft.finish(StartReply(run_id=state.run_id, first_run_id=state.first_run_id, started=True))


def _check_head(head: ExecutionState, request: ImportRun) -> None:
    if head.close_time is None:
        raise WorkflowExecutionAlreadyStarted(
            f"workflow {head.workflow_id!r} is running as run {head.run_id}, and two runs of one id are never open; "
            "import into another namespace, or end that run first",
            run_id=head.run_id,
        )
    began = request.events[0].event_time
    if head.start_time > began:
        raise FailedPrecondition(
            f"workflow {head.workflow_id!r} has run {head.run_id}, which began at {head.start_time.isoformat()}, later "
            f"than run {request.run_id} (at {began.isoformat()}); import the runs of one id in the order of their "
            "starts, or into another namespace",
            run_id=head.run_id,
        )


def _go_on(draft: TransitionBuilder, events: Sequence[HistoryEvent]) -> None:
    state = draft.state
    waits = _waits(state, events)
    state.pause = _paused(events)
    task = state.workflow_task
    if state.pause is not None:
        if waits:
            state.pause = _replace(state.pause, woken=True)
    elif task is not None:
        state.workflow_task = _replace(task, next_dispatch=draft.now + FIRST_REDISPATCH, dispatches=1)
        draft.tasks.append(DispatchWorkflowTask(task_queue=state.task_queue, attempt=task.attempt))
    elif waits:
        workflow_task.schedule(draft)
    draft.tasks.append(closing.visibility(state))
    _dispatch(draft)


def _waits(state: ExecutionState, events: Sequence[HistoryEvent]) -> bool:
    """Whether there is something for workflow code to see, and no task that shows it: the history was cut there."""
    if state.workflow_task is not None:
        return False
    for event in reversed(events):
        if isinstance(event.attributes, WorkflowTaskCompleted):
            return False
        if isinstance(event.attributes, WorkflowExecutionStarted):
            return state.first_task_at is None
        if isinstance(event.attributes, WAKES):
            return not inbox.waits_for_first_task(state)
    return False


def _paused(events: Sequence[HistoryEvent]) -> Pause | None:
    for event in reversed(events):
        match event.attributes:
            case WorkflowExecutionUnpaused():
                return None
            case WorkflowExecutionPaused(identity=identity, reason=reason):
                return Pause(time=event.event_time, identity=identity, reason=reason)
    return None


def _dispatch(draft: TransitionBuilder) -> None:
    state = draft.state
    for pending in list(state.activities.values()):
        draft.put_activity(_replace(pending, next_dispatch=draft.now + FIRST_REDISPATCH, dispatches=1))
        if pending.cancel_requested_event_id:
            draft.tasks.append(activity.told_of_cancel(draft, pending))
        elif state.pause is None:
            draft.tasks.append(
                DispatchActivityTask(scheduled_event_id=pending.scheduled_event_id, task_queue=pending.task_queue)
            )
    for asked in list(asked_of_others(state)):
        # Of a child that had started, its own import may come yet; so long it is not taken for lost.
        has_started = isinstance(asked, PendingChild) and asked.started_event_id
        later = draft.now + FIRST_LOOK_AT_CHILD if has_started else draft.now
        draft.put_asked(_replace(asked, next_dispatch=later, dispatches=1 if has_started else 0))
    crossing.dispatch_again(draft)
