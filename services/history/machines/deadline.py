"""The firing of a run's deadline: everything due by now, and the re-arm (design section 7)."""

from ..activity_item import ActivityItem
from ..builder import TransitionBuilder
from ..requests import FireDeadline
from ..transition import Transition
from . import activity, closing, inbox, workflow_task


def fire(draft: TransitionBuilder, request: FireDeadline) -> Transition:
    """Of an open run. Always a commit, which carries the re-arm: deadlines alone bring every run to its end."""
    state = draft.state
    if state.run_expires is not None and state.run_expires <= draft.now:
        closing.time_out(draft)
        return draft.finish()
    items: dict[int, ActivityItem] = {item.scheduled_event_id: item for item in request.items}
    activity.record_finished(draft, request.items)
    activity.time_out_leases(draft)
    inbox.settle(draft)
    workflow_task.dispatch_again(draft)
    activity.dispatch_again(draft, items)
    return draft.finish(firing=True, fired=request.fire_at, items=items)
