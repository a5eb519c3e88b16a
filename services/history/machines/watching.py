"""Runs that wait for the end of a workflow which is not their child (CH-18, CH-19).

They are kept in the state of what they wait for, pass on within its chain of runs, and hear of its end by the close of
the last one.
"""

from datetime import datetime

from stepwell.api import limits
from stepwell.api.errors import ResourceExhausted

from ..builder import TransitionBuilder, unchanged
from ..requests import Unwatch, Watch
from ..state import ExecutionState, ParentLink
from ..transition import StartReply, Transition
from .parent_close import waiting


def watch(state: ExecutionState, request: Watch, now: datetime) -> Transition:
    """Of a closed workflow there is nothing to wait for: the caller reads how it ended. Raises ResourceExhausted."""
    return add(state, request.waiter, now)


def add(state: ExecutionState, waiter: ParentLink, now: datetime) -> Transition:
    reply = StartReply(run_id=state.run_id, first_run_id=state.first_run_id, started=False)
    if state.close_time is not None or waiter in waiting(state):
        return unchanged(state, reply)
    if len(state.waiters) >= limits.MAX_WAITERS:
        raise ResourceExhausted(
            f"workflow {state.workflow_id!r} is watched by {len(state.waiters)} runs, the most that may wait for one; "
            "let one run wait and tell the others.",
            cause="BUSY_WORKFLOW",
            scope="WORKFLOW",
        )
    draft = TransitionBuilder(state, now)
    draft.state.waiters = (*state.waiters, waiter)
    return draft.finish(reply)


def unwatch(state: ExecutionState, request: Unwatch, now: datetime) -> Transition:
    if request.waiter not in state.waiters or state.close_time is not None:
        return unchanged(state)
    draft = TransitionBuilder(state, now)
    draft.state.waiters = tuple([waiter for waiter in state.waiters if waiter != request.waiter])
    return draft.finish()
