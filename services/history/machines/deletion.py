"""Deleting a run (LC-12), from its log's side: it counts as deleted with the commit that says so, and that commit owes
the rest.

What goes is the store's to know (``ports``); until it is gone the deletion stands among what is owed, which the next
run of the id carries on and whose deadline asks again. Of the newest run its last state stays for as long as the log
needs one to begin the next run behind.
"""

from datetime import datetime

from ..apply import FIRST_REDISPATCH
from ..builder import TransitionBuilder, unchanged
from ..requests import Delete, RecordDeleted, Terminate
from ..state import ExecutionState, OwedArchive, OwedDeletion
from ..tasks import DeleteRun
from ..transition import Transition
from . import archiving, closing
from .run_checks import check_run, is_deleted, no_such_run

_KEPT = (
    "namespace",
    "workflow_id",
    "run_id",
    "first_run_id",
    "workflow_type",
    "task_queue",
    "status",
    "start_time",
    "close_time",
    "last_event_time",
    "workflow_task_timeout",
    "next_event_id",
    "history_size",
    "original_run_id",
    "seq",
    "first_seq",
    "prefix_tail_seq",
    "numbered_seq",
    "armed",
    "request_ids",
    "owed",
    "starts_paid_until",
)
"""Of a deleted run's state: what says which run it was and when, and what passes on. Nothing that a user has put in."""


def delete(state: ExecutionState, request: Delete, now: datetime) -> Transition:
    """Once: a repeat, while there is anything left, changes nothing. Raises NotFound."""
    run_id = request.run_id or state.run_id
    if pending(state, run_id):
        return unchanged(state)
    if is_deleted(state, run_id) or not (run_id == state.run_id or request.found):
        raise no_such_run(state, run_id)
    if run_id == state.run_id:
        check_run(state, run_id, request.first_run_id)
    draft = TransitionBuilder(state, now)
    if state.close_time is not None and not state.owed:
        draft.state.armed = None  # struck off with the close
    if run_id == state.run_id and state.close_time is None:
        asked = Terminate(
            run_id=run_id, reason="the run is deleted", identity=request.identity, principal=request.principal
        )
        closing.terminate(draft, asked)
    entry = OwedDeletion(run_id=run_id, next_dispatch=now + FIRST_REDISPATCH)
    draft.put_owed((*draft.state.owed, entry))
    archiving.hurry(draft)
    draft.tasks.append(DeleteRun(run_id=run_id))
    return draft.finish()


def record_deleted(state: ExecutionState, request: RecordDeleted, now: datetime) -> Transition:
    if not pending(state, request.run_id):
        return unchanged(state)
    draft = TransitionBuilder(state, now)
    left = [entry for entry in state.owed if not (isinstance(entry, OwedDeletion) and entry.run_id == request.run_id)]
    draft.put_owed(tuple(left))
    if request.run_id == state.run_id:
        kept = {name: getattr(draft.state, name) for name in _KEPT}
        draft.state = ExecutionState(**kept, deleted=True)
    return draft.finish()


def pending(state: ExecutionState, run_id: str) -> bool:
    """Whether the run is being deleted."""
    return any(isinstance(entry, OwedDeletion) and entry.run_id == run_id for entry in state.owed)


def owes_more(state: ExecutionState, run_id: str) -> bool:
    """Whether the run has something to deliver to others yet that its history tells."""
    others = (entry for entry in state.owed if not isinstance(entry, OwedDeletion | OwedArchive))
    return any(entry.run_id == run_id for entry in others)
