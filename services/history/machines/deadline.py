"""The firing of a run's deadline: everything due by now, and the re-arm (design section 7)."""

from ..activity_item import ActivityItem
from ..builder import TransitionBuilder
from ..requests import FireDeadline
from ..transition import Transition
from . import activity, chain, crossing, standalone, workflow_task


def fire(draft: TransitionBuilder, request: FireDeadline) -> Transition:
    """Of an open run, or one that owes. Always a commit, which carries the re-arm: deadlines alone bring every run to
    its end, and deliver what it owes."""
    state = draft.state
    if state.close_time is None and state.run_expires is not None and state.run_expires <= draft.now:
        chain.time_out(draft, request.next_run)
        if draft.state is not state:
            return draft.finish(firing=True, fired=request.fire_at)  # the next run of the chain has begun
    if state.close_time is not None:
        crossing.dispatch_again(draft)
        return draft.finish(firing=True, fired=request.fire_at)
    items: dict[int, ActivityItem] = {item.scheduled_event_id: item for item in request.items}
    activity.record_finished(draft, request.items)
    activity.time_out_leases(draft)
    if state.first_task_at is not None and state.first_task_at <= draft.now:
        workflow_task.schedule(draft)
    standalone.settle(draft)
    workflow_task.dispatch_again(draft)
    activity.note_failing(draft, items)
    activity.dispatch_again(draft, items)
    crossing.dispatch_again(draft)
    return draft.finish(firing=True, fired=request.fire_at, items=items)
