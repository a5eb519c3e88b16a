"""Our history events as Temporal's, for workers and whoever reads a history. Hand-written, one function for each kind.

``TABLE`` has them all; a test compares it with the union of events. A new event is one function in the module of its
subject and one row there.
"""

from collections.abc import Iterable

from stepwell.api.events import HistoryEvent
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
    return value


def to_history(events: Iterable[HistoryEvent], namespace: str) -> pb.History:
    return pb.History(events=[to_event(event, namespace) for event in events])
