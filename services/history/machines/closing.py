"""Ends of a run: by its own command, or by the server after everything buffered has been placed (design section 4)."""

import msgspec
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.events import (
    EventAttributes,
    WorkflowExecutionFailed,
    WorkflowExecutionTerminated,
    WorkflowExecutionTimedOut,
)

from .. import problems
from ..builder import TransitionBuilder
from ..problems import NONE, Problems
from ..requests import Terminate
from ..state import ExecutionState
from ..tasks import CancelActivity, RecordVisibility
from ..transition import Transition
from . import crossing, inbox, parent_close

ENDS_BADLY = frozenset({WorkflowExecutionFailed, WorkflowExecutionTerminated, WorkflowExecutionTimedOut})


def shown_status(state: ExecutionState) -> WorkflowExecutionStatus:
    """As people see it: a run that is paused is open for everything else."""
    if state.pause is not None and state.close_time is None:
        return WorkflowExecutionStatus.PAUSED
    return state.status


def visibility(state: ExecutionState, wrong: Problems = NONE) -> RecordVisibility:
    """``wrong``: with a closed run."""
    wrong = wrong if state.close_time is not None else problems.of_state(state)
    return RecordVisibility(
        run_id=state.run_id,
        workflow_type=state.workflow_type,
        task_queue=state.task_queue,
        status=shown_status(state),
        start_time=state.start_time,
        close_time=state.close_time,
        history_length=state.next_event_id - 1,
        memo=state.memo,
        search_attributes={**state.search_attributes, **wrong.attributes()}
        if wrong != NONE
        else state.search_attributes,
    )


def close(draft: TransitionBuilder, attributes: EventAttributes, *, goes_on: bool = False) -> None:
    """Records the event that closes the run. Nothing may be buffered; what the run itself waited for is owed no more,
    what it has asked of others is, and its end to its children. Unless the chain of runs ``goes_on`` behind it, who
    waits for the chain is owed to hear of its end."""
    crossing.owe(draft)
    wrong = problems.of_end(problems.of_state(draft.state), attributes) if type(attributes) in ENDS_BADLY else NONE
    event = draft.record(attributes)
    if not goes_on:
        parent_close.owe_notices(draft, event)
    cancelled = [task for task in draft.tasks if isinstance(task, CancelActivity)]
    draft.tasks[:] = [visibility(draft.state, wrong), *crossing.tasks_of(draft.tasks), *cancelled]


def terminate(draft: TransitionBuilder, request: Terminate) -> None:
    inbox.flush(draft)
    terminated = WorkflowExecutionTerminated(
        reason=request.reason, details=request.details, identity=request.identity, principal=request.principal
    )
    close(draft, terminated)


def time_out(draft: TransitionBuilder) -> None:
    inbox.flush(draft)
    close(draft, WorkflowExecutionTimedOut())


def with_problems(before: ExecutionState, transition: Transition) -> Transition:
    """Projects the run once more when it began to fail, or recovered (VI-19)."""
    after = transition.state
    if not transition.changed or after.close_time is not None or after.run_id != before.run_id:
        return transition
    if not problems.have_changed(before, after):
        return transition
    others = [task for task in transition.tasks if type(task) is not RecordVisibility]
    return msgspec.structs.replace(transition, tasks=(*others, visibility(after)))
