"""What comes in: numbered at once when no workflow task is outstanding, else buffered (design section 4)."""

from typing import get_args

import msgspec
from stepwell.api import limits
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.events import (
    ActivityTaskStarted,
    ChildWorkflowExecutionStarted,
    EventAttributes,
    WorkflowExecutionOptionsUpdated,
    WorkflowExecutionPaused,
    WorkflowExecutionUnpaused,
)

from .. import history_limits
from ..builder import TransitionBuilder
from ..placement import ActivityEnd, Begun, Unplaced
from ..state import BufferedEvent, ExecutionState
from . import workflow_task

Noted = WorkflowExecutionOptionsUpdated | WorkflowExecutionPaused | WorkflowExecutionUnpaused
NOTED = frozenset(get_args(Noted))
"""What workflow code is not woken for, and sees nothing of."""

_encode = msgspec.json.Encoder().encode
_replace = msgspec.structs.replace


def receive(draft: TransitionBuilder, attributes: EventAttributes) -> None:
    """Takes one event in. The caller ends with ``settle``."""
    draft.woken = True
    if draft.state.workflow_task is None:
        draft.record(attributes)
    else:
        _buffer(draft, attributes, None)


def note(draft: TransitionBuilder, attributes: Noted) -> None:
    """Takes in what workflow code is not woken for. The caller ends with ``settle``."""
    if draft.state.workflow_task is None:
        draft.record(attributes)
    else:
        draft.noted = True
        _buffer(draft, attributes, None)


def wakes(entry: BufferedEvent | Unplaced) -> bool:
    """Whether workflow code is to see it before it ends."""
    return type(entry.attributes) not in NOTED


def receive_end(draft: TransitionBuilder, started: ActivityTaskStarted, end: ActivityEnd) -> None:
    """Takes an activity's end in, behind its Started event (rule 8)."""
    draft.woken = True
    if draft.state.workflow_task is None:
        draft.record(_replace(end, started_event_id=draft.record(started).event_id))
    else:
        _buffer(draft, end, started)


def receive_child_end(draft: TransitionBuilder, started: ChildWorkflowExecutionStarted, end: EventAttributes) -> None:
    """Takes in the end of a child whose start was not confirmed, behind its Started event."""
    draft.woken = True
    if draft.state.workflow_task is None:
        draft.record(_replace(end, started_event_id=draft.record(started).event_id))
    else:
        _buffer(draft, end, started)


def settle(draft: TransitionBuilder) -> None:
    """What came in gets its workflow task, or waits in a buffer that is within its limits (MS-04)."""
    if not (draft.woken or draft.noted) or draft.state.close_time is not None:
        return
    if draft.state.workflow_task is None:
        if draft.woken and not waits_for_first_task(draft.state):
            if draft.state.pause is None:
                workflow_task.schedule(draft)
            elif not draft.state.pause.woken:
                draft.state.pause = _replace(draft.state.pause, woken=True)
    elif _over_limits(draft.state.buffered):
        _force_close(draft)


def waits_for_first_task(state: ExecutionState) -> bool:
    """A start delay ends with whatever comes in (LC-07); a backoff, of a retry or a cron, only when the run is asked
    to cancel."""
    if state.first_task_at is None or state.cancel_requested:
        return False
    return bool(state.continued_execution_run_id or state.cron_schedule)


def flush(draft: TransitionBuilder) -> None:
    """Numbers all buffered events, in order, and empties the buffer."""
    buffered, draft.state.buffered = draft.state.buffered, ()
    for event in buffered:
        number(draft, event)


def flush_noted(draft: TransitionBuilder) -> None:
    """Numbers what workflow code need not see, before the run's own close; the rest stays."""
    buffered = draft.state.buffered
    if buffered:
        draft.state.buffered = tuple([entry for entry in buffered if wakes(entry)])
        for entry in buffered:
            if not wakes(entry):
                number(draft, entry)


def number(draft: TransitionBuilder, entry: BufferedEvent | Unplaced) -> None:
    """Gives its number(s) to something that came in earlier."""
    attributes = entry.attributes
    if entry.started is not None:
        started = draft.record(entry.started, entry.time)
        attributes = _replace(attributes, started_event_id=started.event_id)
    draft.record(Begun(draft.state).completed(attributes), entry.time)


def _buffer(draft: TransitionBuilder, attributes: EventAttributes, started: EventAttributes | None) -> None:
    state = draft.state
    time = draft.now
    if state.buffered and time < state.buffered[-1].time:
        time = state.buffered[-1].time
    size = len(_encode(attributes)) + (len(_encode(started)) if started is not None else 0)
    event = BufferedEvent(index=state.next_buffer_index, time=time, attributes=attributes, started=started, size=size)
    state.next_buffer_index += 1
    state.buffered = (*state.buffered, event)
    if isinstance(started, ActivityTaskStarted):
        draft.ended.add(started.scheduled_event_id)


def _over_limits(buffered: tuple[BufferedEvent, ...]) -> bool:
    """Ends of leased activities count by their bytes alone: there are no more than activities are pending, and a wide
    fan-out would lose its task, and its worker what it has computed, each time that a hundred end together."""
    if len(buffered) > limits.MAX_BUFFERED_EVENTS:
        asked = sum(type(event.started) is not ActivityTaskStarted for event in buffered)
        if asked > limits.MAX_BUFFERED_EVENTS:
            return True
    return len(buffered) > 1 and sum(event.size for event in buffered) > limits.MAX_BUFFERED_BYTES


def _force_close(draft: TransitionBuilder) -> None:
    """Fails the outstanding task, so that the buffer can be numbered; what its worker holds is stale."""
    task = draft.state.workflow_task
    scheduled_event_id = workflow_task.record_scheduled(draft)
    size, reasons = draft.state.history_size, history_limits.suggested(draft.state)
    started = draft.record(history_limits.started(scheduled_event_id, size, reasons))
    workflow_task.record_failed(draft, started.event_id, WorkflowTaskFailedCause.FORCE_CLOSE_COMMAND)
    flush(draft)
    workflow_task.schedule(draft, after=task)
