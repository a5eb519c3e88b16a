"""Our history events as Temporal's, for workers and whoever reads a history. Hand-written, one function for each kind.

``TABLE`` has them all; a test compares it with the union of events. A new event is one function in the module of its
subject and one row there.
"""

from collections.abc import Sequence

from stepwell.api import events as ev
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.events import HistoryEvent
from temporalio.api.common.v1.message_pb2 import Principal
from temporalio.api.history.v1 import message_pb2 as pb

from ..records import to_user_metadata
from ..times import timestamp
from . import activities, children, external, tasks, timers, updates, workflow
from .row import Row

TABLE: dict[type, Row] = {
    **workflow.TABLE,
    **tasks.TABLE,
    **activities.TABLE,
    **timers.TABLE,
    **updates.TABLE,
    **children.TABLE,
    **external.TABLE,
}


_ABOUT_OTHERS = frozenset({*children.TABLE, *external.TABLE})


def to_event(event: HistoryEvent, namespace: str) -> pb.HistoryEvent:
    kind = type(event.attributes)
    row = TABLE[kind]
    attributes = row.attributes(event.attributes)
    if kind in _ABOUT_OTHERS and not attributes.namespace:
        attributes.namespace = namespace  # the run's own, which we leave out
    value = pb.HistoryEvent(
        event_id=event.event_id,
        event_time=timestamp(event.event_time),
        event_type=row.event_type,
        task_id=event.event_id,
        worker_may_ignore=row.may_ignore,
        user_metadata=to_user_metadata(event.user_metadata),
        **{row.field: attributes},
    )
    principal: str = getattr(event.attributes, "principal", "")
    if principal:
        value.principal.CopyFrom(Principal(type="iam" if principal.startswith("arn:") else "key", name=principal))
    return value


def to_history(events: Sequence[HistoryEvent], namespace: str, worker: str = "") -> pb.History:
    """``worker``: the identity of who is given the task that the last event starts."""
    made = [to_event(event, namespace) for event in events]
    for place, event in enumerate(events):
        ended = event.attributes
        if isinstance(ended, ev.WorkflowTaskCompleted) or (
            isinstance(ended, ev.WorkflowTaskFailed) and ended.cause != WorkflowTaskFailedCause.RESET_WORKFLOW
        ):
            _started_by(ended.identity, ended.started_event_id, made[max(0, place - 1) : place + 2])
    if worker and made:
        _started_by(worker, made[-1].event_id, made[-1:])
    return pb.History(events=made)


def _started_by(identity: str, event_id: int, among: Sequence[pb.HistoryEvent]) -> None:
    """Nothing is written when a task starts, so whose it was is known from its end."""
    for value in among:
        if value.event_id == event_id and value.HasField("workflow_task_started_event_attributes"):
            value.workflow_task_started_event_attributes.identity = identity
