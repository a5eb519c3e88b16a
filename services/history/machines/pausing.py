"""A run that is paused: its work is kept, and not given out (LC-11).

What comes in is recorded as ever, without a workflow task for it. A workflow task or an attempt that waits in a queue
is not handed out there; one that a worker has may finish. Deadlines fire, but send nothing. Unpausing sends it all.
"""

import msgspec
from stepwell.api.errors import FailedPrecondition
from stepwell.api.events import WorkflowExecutionPaused, WorkflowExecutionUnpaused

from .. import request_ids
from ..builder import TransitionBuilder
from ..requests import Pause, Unpause
from ..state import ExecutionState
from ..state import Pause as Paused
from ..tasks import DispatchWorkflowTask
from . import closing, inbox, workflow_task

_replace = msgspec.structs.replace


def is_repeat(state: ExecutionState, request: Pause | Unpause) -> bool:
    return request_ids.is_known(state, request_ids.PAUSE, request.request_id)


def pause(draft: TransitionBuilder, request: Pause) -> None:
    """Raises FailedPrecondition for a run that is paused."""
    state = draft.state
    if state.pause is not None:
        by = f" by {state.pause.identity}" if state.pause.identity else ""
        raise FailedPrecondition(
            f"workflow {state.workflow_id!r} is paused already, since {state.pause.time.isoformat()}{by}; unpause it "
            "first, to pause it for another reason"
        )
    request_ids.remember(state, request_ids.PAUSE, request.request_id)
    state.pause = Paused(time=draft.now, identity=request.identity, reason=request.reason)
    inbox.note(
        draft,
        WorkflowExecutionPaused(
            identity=request.identity,
            reason=request.reason,
            request_id=request.request_id,
            principal=request.principal,
        ),
    )
    draft.tasks.append(closing.visibility(state))


def unpause(draft: TransitionBuilder, request: Unpause) -> None:
    """Raises FailedPrecondition for a run that is not paused."""
    state = draft.state
    paused = state.pause
    if paused is None:
        raise FailedPrecondition(f"workflow {state.workflow_id!r} is not paused; there is nothing to unpause")
    request_ids.remember(state, request_ids.PAUSE, request.request_id)
    state.pause = None
    inbox.note(
        draft,
        WorkflowExecutionUnpaused(
            identity=request.identity,
            reason=request.reason,
            request_id=request.request_id,
            principal=request.principal,
        ),
    )
    if state.workflow_task is not None:
        draft.tasks.append(DispatchWorkflowTask(task_queue=state.task_queue, attempt=state.workflow_task.attempt))
    elif paused.woken:
        workflow_task.schedule(draft)
    for pending in list(state.activities.values()):
        if pending.lease is None:
            # The firing that this makes due knows the items, and so which attempts wait.
            draft.put_activity(_replace(pending, next_dispatch=draft.now))
    draft.tasks.append(closing.visibility(state))
