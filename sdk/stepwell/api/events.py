"""History events: the facts of a run, in the field's model (``temporal.api.history.v1``, in snake_case).

A history is a list of :class:`HistoryEvent` with ids 1, 2, 3, …; what a reader has been shown never changes. The
records are in ``events_*`` by subject; this is their union, and where everybody imports them from.
"""

from datetime import datetime

import msgspec

from .common import UserMetadata
from .events_activity import ActivityTaskCanceled as ActivityTaskCanceled
from .events_activity import ActivityTaskCancelRequested as ActivityTaskCancelRequested
from .events_activity import ActivityTaskCompleted as ActivityTaskCompleted
from .events_activity import ActivityTaskFailed as ActivityTaskFailed
from .events_activity import ActivityTaskScheduled as ActivityTaskScheduled
from .events_activity import ActivityTaskStarted as ActivityTaskStarted
from .events_activity import ActivityTaskTimedOut as ActivityTaskTimedOut
from .events_child import ChildWorkflowExecutionCanceled as ChildWorkflowExecutionCanceled
from .events_child import ChildWorkflowExecutionCompleted as ChildWorkflowExecutionCompleted
from .events_child import ChildWorkflowExecutionFailed as ChildWorkflowExecutionFailed
from .events_child import ChildWorkflowExecutionStarted as ChildWorkflowExecutionStarted
from .events_child import ChildWorkflowExecutionTerminated as ChildWorkflowExecutionTerminated
from .events_child import ChildWorkflowExecutionTimedOut as ChildWorkflowExecutionTimedOut
from .events_child import StartChildWorkflowExecutionFailed as StartChildWorkflowExecutionFailed
from .events_child import StartChildWorkflowExecutionInitiated as StartChildWorkflowExecutionInitiated
from .events_external import ExternalWorkflowExecutionCancelRequested as ExternalWorkflowExecutionCancelRequested
from .events_external import ExternalWorkflowExecutionSignaled as ExternalWorkflowExecutionSignaled
from .events_external import (
    RequestCancelExternalWorkflowExecutionFailed as RequestCancelExternalWorkflowExecutionFailed,
)
from .events_external import (
    RequestCancelExternalWorkflowExecutionInitiated as RequestCancelExternalWorkflowExecutionInitiated,
)
from .events_external import SignalExternalWorkflowExecutionFailed as SignalExternalWorkflowExecutionFailed
from .events_external import SignalExternalWorkflowExecutionInitiated as SignalExternalWorkflowExecutionInitiated
from .events_task import WorkflowTaskCompleted as WorkflowTaskCompleted
from .events_task import WorkflowTaskFailed as WorkflowTaskFailed
from .events_task import WorkflowTaskScheduled as WorkflowTaskScheduled
from .events_task import WorkflowTaskStarted as WorkflowTaskStarted
from .events_task import WorkflowTaskTimedOut as WorkflowTaskTimedOut
from .events_timer import MarkerRecorded as MarkerRecorded
from .events_timer import TimerCanceled as TimerCanceled
from .events_timer import TimerFired as TimerFired
from .events_timer import TimerStarted as TimerStarted
from .events_update import WorkflowExecutionUpdateAccepted as WorkflowExecutionUpdateAccepted
from .events_update import WorkflowExecutionUpdateAdmitted as WorkflowExecutionUpdateAdmitted
from .events_update import WorkflowExecutionUpdateCompleted as WorkflowExecutionUpdateCompleted
from .events_workflow import UpsertWorkflowSearchAttributes as UpsertWorkflowSearchAttributes
from .events_workflow import WorkflowExecutionCanceled as WorkflowExecutionCanceled
from .events_workflow import WorkflowExecutionCancelRequested as WorkflowExecutionCancelRequested
from .events_workflow import WorkflowExecutionCompleted as WorkflowExecutionCompleted
from .events_workflow import WorkflowExecutionContinuedAsNew as WorkflowExecutionContinuedAsNew
from .events_workflow import WorkflowExecutionFailed as WorkflowExecutionFailed
from .events_workflow import WorkflowExecutionOptionsUpdated as WorkflowExecutionOptionsUpdated
from .events_workflow import WorkflowExecutionPaused as WorkflowExecutionPaused
from .events_workflow import WorkflowExecutionSignaled as WorkflowExecutionSignaled
from .events_workflow import WorkflowExecutionStarted as WorkflowExecutionStarted
from .events_workflow import WorkflowExecutionTerminated as WorkflowExecutionTerminated
from .events_workflow import WorkflowExecutionTimedOut as WorkflowExecutionTimedOut
from .events_workflow import WorkflowExecutionUnpaused as WorkflowExecutionUnpaused
from .events_workflow import WorkflowPropertiesModified as WorkflowPropertiesModified

EventAttributes = (
    WorkflowExecutionStarted
    | WorkflowExecutionCompleted
    | WorkflowExecutionFailed
    | WorkflowExecutionTimedOut
    | WorkflowExecutionCanceled
    | WorkflowExecutionTerminated
    | WorkflowExecutionCancelRequested
    | WorkflowExecutionSignaled
    | WorkflowTaskScheduled
    | WorkflowTaskStarted
    | WorkflowTaskCompleted
    | WorkflowTaskTimedOut
    | WorkflowTaskFailed
    | ActivityTaskScheduled
    | ActivityTaskStarted
    | ActivityTaskCompleted
    | ActivityTaskFailed
    | ActivityTaskTimedOut
    | ActivityTaskCancelRequested
    | ActivityTaskCanceled
    | TimerStarted
    | TimerFired
    | TimerCanceled
    | MarkerRecorded
    | WorkflowExecutionContinuedAsNew
    | UpsertWorkflowSearchAttributes
    | WorkflowPropertiesModified
    | StartChildWorkflowExecutionInitiated
    | StartChildWorkflowExecutionFailed
    | ChildWorkflowExecutionStarted
    | ChildWorkflowExecutionCompleted
    | ChildWorkflowExecutionFailed
    | ChildWorkflowExecutionCanceled
    | ChildWorkflowExecutionTimedOut
    | ChildWorkflowExecutionTerminated
    | SignalExternalWorkflowExecutionInitiated
    | SignalExternalWorkflowExecutionFailed
    | ExternalWorkflowExecutionSignaled
    | RequestCancelExternalWorkflowExecutionInitiated
    | RequestCancelExternalWorkflowExecutionFailed
    | ExternalWorkflowExecutionCancelRequested
    | WorkflowExecutionUpdateAdmitted
    | WorkflowExecutionUpdateAccepted
    | WorkflowExecutionUpdateCompleted
    | WorkflowExecutionOptionsUpdated
    | WorkflowExecutionPaused
    | WorkflowExecutionUnpaused
)

CLOSE_EVENTS = (
    WorkflowExecutionCompleted,
    WorkflowExecutionFailed,
    WorkflowExecutionTimedOut,
    WorkflowExecutionCanceled,
    WorkflowExecutionTerminated,
    WorkflowExecutionContinuedAsNew,
)


class HistoryEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One fact. ``attributes.type`` names it; ``event_time`` is UTC and never runs backwards in a run."""

    event_id: int
    event_time: datetime
    attributes: EventAttributes
    user_metadata: UserMetadata | None = None

    @property
    def event_type(self) -> str:
        return type(self.attributes).__name__
