"""What the engine says, signed, when it hands out a task; the caller brings it back with its answer (``tokens``)."""

from datetime import datetime

import msgspec


class PlacedBuffered(msgspec.Struct, frozen=True, tag="b", array_like=True, gc=False):
    """The buffered event with this index."""

    index: int


class PlacedActivity(msgspec.Struct, frozen=True, tag="a", array_like=True, gc=False):
    """The end of this item-held activity."""

    scheduled_event_id: int


class PlacedTimer(msgspec.Struct, frozen=True, tag="t", array_like=True, gc=False):
    """The firing of this pending timer."""

    timer_id: str


class PlacedUpdate(msgspec.Struct, frozen=True, tag="u", array_like=True, gc=False):
    """The admitted update with this index: shown at this place. It is no event unless it is accepted."""

    index: int


Placed = PlacedBuffered | PlacedActivity | PlacedTimer | PlacedUpdate


class WorkflowTaskToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the engine says, signed, when it hands out a workflow task; the completion brings it back."""

    namespace: str
    workflow_id: str
    run_id: str
    base: int
    """Seq of the head when the task was handed out."""
    attempt: int
    placed: tuple[Placed, ...]
    """Exactly what the completion puts before WorkflowTaskStarted, in order."""
    started_time: datetime
    """Workflow time of the task."""
    refused_closes: int = 0
    ahead: datetime | None = None
    """Given out before the firing that scheduled the task was written (``firing_ahead``): the time of that firing's
    events. ``base`` is the head then."""


class ContinuationToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Given with an accepted completion: the right to send a fused step on top of it."""

    namespace: str
    workflow_id: str
    run_id: str
    base: int
    """Seq of the completion's commit."""


class ActivityToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Names one attempt of one activity."""

    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    attempt: int
    leased: bool
    activity_id: str = ""
    stamp: int = 0
    """Tells attempts of one number apart (``ActivityItem.stamp``)."""
