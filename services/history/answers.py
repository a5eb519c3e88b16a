"""What became of what a run asked of other executions, or owes them; and the requests that bring such answers."""

import msgspec
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import (
    CancelExternalWorkflowExecutionFailedCause,
    SignalExternalWorkflowExecutionFailedCause,
    StartChildWorkflowExecutionFailedCause,
)
from stepwell.api.events import EventAttributes, StartChildWorkflowExecutionInitiated

from .state import ParentLink


class Delivery(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of a signal or a request to cancel: delivered, or refused with ``cause``."""

    run_id: str
    """The run that asked."""
    initiated_event_id: int
    workflow_task_completed_event_id: int
    namespace: str = ""
    execution: WorkflowExecution
    cause: SignalExternalWorkflowExecutionFailedCause | CancelExternalWorkflowExecutionFailedCause | None = None


class ChildAnswer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of the start of a child: it is there, or refused with ``cause``."""

    run_id: str
    """The parent's."""
    initiated_event_id: int
    child_run_id: str = ""
    """First run of the child's chain; empty when there is no child."""
    asked: StartChildWorkflowExecutionInitiated
    cause: StartChildWorkflowExecutionFailedCause | None = None
    workflow_type: str = ""
    """Of what is watched."""


class ChildClosed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a chain of runs ended, for the run that waits for it."""

    waiter: ParentLink
    workflow_id: str
    first_run_id: str
    workflow_type: str
    close: EventAttributes
    """The event that closed the chain's last run."""

    @property
    def run_id(self) -> str:
        return self.waiter.run_id


class Discharged(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a closed run owed is done, or needs no doing any more."""

    run_id: str
    initiated_event_id: int
    waiter: ParentLink | None = None
    """Of a notice: who was told."""


Answer = Delivery | ChildAnswer | ChildClosed | Discharged


class ExternalDelivered(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Answers for the run that asked; those for a run that has closed meanwhile discharge what it owes."""

    deliveries: tuple[Answer, ...]


class Discharge(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Answers for runs that are closed: what they owed is owed no more. One commit for all of it."""

    deliveries: tuple[Answer, ...]
