"""What must hold of the events about other workflows and of updates: each is asked for once and answered once."""

from stepwell.api import events as e
from stepwell.api.events import HistoryEvent

from .violations import violation

CHILD_ENDS = (
    e.ChildWorkflowExecutionCompleted,
    e.ChildWorkflowExecutionFailed,
    e.ChildWorkflowExecutionCanceled,
    e.ChildWorkflowExecutionTimedOut,
    e.ChildWorkflowExecutionTerminated,
)
_SIGNAL_ENDS = (e.ExternalWorkflowExecutionSignaled, e.SignalExternalWorkflowExecutionFailed)
_CANCEL_ENDS = (e.ExternalWorkflowExecutionCancelRequested, e.RequestCancelExternalWorkflowExecutionFailed)

ANSWERS = (
    e.StartChildWorkflowExecutionFailed,
    e.ChildWorkflowExecutionStarted,
    *CHILD_ENDS,
    *_SIGNAL_ENDS,
    *_CANCEL_ENDS,
)
"""What comes from another workflow for workflow code to see."""


class OtherWorkflowRules:
    """Children, and signals and cancels to others, by initiated event id."""

    def __init__(self) -> None:
        self._children: dict[int, tuple[e.StartChildWorkflowExecutionInitiated, HistoryEvent | None]] = {}
        self._signals: set[int] = set()
        self._cancels: set[int] = set()

    def add(self, event: HistoryEvent) -> None:
        body = event.attributes
        if isinstance(body, e.StartChildWorkflowExecutionInitiated):
            self._children[event.event_id] = (body, None)
        elif isinstance(body, e.SignalExternalWorkflowExecutionInitiated):
            self._signals.add(event.event_id)
        elif isinstance(body, e.RequestCancelExternalWorkflowExecutionInitiated):
            self._cancels.add(event.event_id)
        elif isinstance(body, _SIGNAL_ENDS):
            self._end(event, self._signals, body.initiated_event_id)
        elif isinstance(body, _CANCEL_ENDS):
            self._end(event, self._cancels, body.initiated_event_id)
        else:
            self._child(event)

    def _end(self, event: HistoryEvent, pending: set[int], initiated_event_id: int) -> None:
        if initiated_event_id not in pending:
            raise violation(event, "answers nothing that is pending")
        pending.remove(initiated_event_id)

    def _child(self, event: HistoryEvent) -> None:
        body = event.attributes
        if not isinstance(body, (e.StartChildWorkflowExecutionFailed, e.ChildWorkflowExecutionStarted, *CHILD_ENDS)):
            return
        if body.initiated_event_id not in self._children:
            raise violation(event, "is of a child that is not pending")
        asked, started = self._children[body.initiated_event_id]
        if isinstance(body, CHILD_ENDS):
            if started is None or started.event_id != body.started_event_id:
                raise violation(event, "does not name the start of its child")
            if started.attributes.workflow_execution != body.workflow_execution:  # type: ignore[union-attr]
                raise violation(event, "is of another run than was started")
        elif started is not None:
            raise violation(event, "is about the start of a child that has started")
        if isinstance(body, e.ChildWorkflowExecutionStarted):
            if body.workflow_execution.workflow_id != asked.workflow_id:
                raise violation(event, "started another workflow than was asked for")
            self._children[body.initiated_event_id] = (asked, event)
        else:
            del self._children[body.initiated_event_id]


class UpdateRules:
    """An update is accepted once and completed once, in this order."""

    def __init__(self) -> None:
        self._admitted: set[str] = set()
        self._accepted: dict[str, int] = {}
        self._completed: set[str] = set()

    def add(self, event: HistoryEvent) -> None:
        body = event.attributes
        if isinstance(body, e.WorkflowExecutionUpdateAdmitted):
            update_id = body.request.meta.update_id
            if update_id in self._admitted or update_id in self._accepted:
                raise violation(event, f"admits update {update_id!r} a second time")
            self._admitted.add(update_id)
        elif isinstance(body, e.WorkflowExecutionUpdateAccepted):
            update_id = body.protocol_instance_id
            if update_id in self._accepted:
                raise violation(event, f"accepts update {update_id!r} a second time")
            if body.accepted_request is None and update_id not in self._admitted:
                raise violation(event, "has no request, here or in an admission")
            self._accepted[update_id] = event.event_id
        elif isinstance(body, e.WorkflowExecutionUpdateCompleted):
            update_id = body.meta.update_id
            if update_id in self._completed:
                raise violation(event, f"completes update {update_id!r} a second time")
            rejected = not body.accepted_event_id and update_id in self._admitted and update_id not in self._accepted
            if not rejected and self._accepted.get(update_id) != body.accepted_event_id:
                raise violation(event, f"does not name the acceptance of update {update_id!r}")
            self._completed.add(update_id)
