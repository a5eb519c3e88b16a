"""What the end of a run means for its children (CH-02), and what the end of a chain means for who waits for it.

A child whose start is not confirmed is never started once its parent is closed, unless the policy is ABANDON: then it
is. Those that are only watched (CH-18) are none of their watcher's business: they only learn that it waits no more.
"""

from collections.abc import Sequence

from stepwell.api.enums import ParentClosePolicy
from stepwell.api.events import HistoryEvent

from ..apply import FIRST_REDISPATCH
from ..builder import TransitionBuilder
from ..state import ExecutionState, OwedChild, OwedNotice, ParentLink, PendingChild
from ..tasks import NotifyParent

CALLBACKS_OF = "\x01callbacks/{}"
"""The id of the wake-ups of such a record."""


def owed_children(draft: TransitionBuilder) -> list[OwedChild]:
    """What the run that is about to close owes to its children."""
    state = draft.state
    return [
        OwedChild(
            run_id=state.run_id,
            initiated_event_id=pending.initiated_event_id,
            initiated_seq=pending.initiated_seq,
            namespace=pending.namespace,
            workflow_id=pending.workflow_id,
            policy=pending.parent_close_policy,
            watched=pending.attached,
            original_run_id=state.original_run_id,
            root=state.root,
            next_dispatch=draft.now + FIRST_REDISPATCH,
            dispatches=1,
        )
        for pending in state.children.values()
        if _outlives(pending)
    ]


def _outlives(pending: PendingChild) -> bool:
    """Whether something is to be done for the child behind its parent's close."""
    if pending.attached:
        return True
    if pending.parent_close_policy is ParentClosePolicy.ABANDON:
        return not pending.started_event_id
    return True


def owe_notices(draft: TransitionBuilder, close: HistoryEvent) -> None:
    """The chain ends with this event: its parent is to be told, and who else waits for it."""
    state = draft.state
    told = [*waiting(state)]
    if not told:
        return
    draft.put_owed((*state.owed, *(_notice(draft, close, waiter) for waiter in told)))
    draft.tasks += [
        NotifyParent(
            run_id=state.run_id,
            initiated_event_id=close.event_id,
            namespace=waiter.namespace,
            workflow_id=waiter.workflow_id,
        )
        for waiter in told
    ]


def waiting(state: ExecutionState) -> Sequence[ParentLink]:
    """Who is to hear of the chain's end."""
    waiters = state.waiters if state.parent is None else (state.parent, *state.waiters)
    return (*waiters, _callbacks_of(state)) if state.callbacks else waiters


def _callbacks_of(state: ExecutionState) -> ParentLink:
    """Who takes in that callbacks are to be told (LC-10): a record of the control store, by the run that ends."""
    return ParentLink(
        namespace=state.namespace,
        workflow_id=CALLBACKS_OF.format(state.run_id),
        run_id=state.first_run_id,
        initiated_event_id=0,
    )


def _notice(draft: TransitionBuilder, close: HistoryEvent, waiter: ParentLink) -> OwedNotice:
    state = draft.state
    return OwedNotice(
        run_id=state.run_id,
        initiated_event_id=close.event_id,
        initiated_seq=state.seq,
        namespace=waiter.namespace,
        workflow_id=waiter.workflow_id,
        waiter=waiter,
        first_run_id=state.first_run_id,
        workflow_type=state.workflow_type,
        next_dispatch=draft.now + FIRST_REDISPATCH,
        dispatches=1,
    )
