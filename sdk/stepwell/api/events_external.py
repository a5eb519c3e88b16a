"""Events of signals and cancellation requests to other workflows, at the workflow that sends them."""

from ._struct import Tagged
from .common import Headers, WorkflowExecution
from .enums import CancelExternalWorkflowExecutionFailedCause, SignalExternalWorkflowExecutionFailedCause
from .payloads import Payloads


class SignalExternalWorkflowExecutionInitiated(Tagged, frozen=True, kw_only=True):
    """The run asked for a signal to another workflow. An empty ``namespace`` in these events is the run's own; an empty
    ``run_id`` means whatever run is open."""

    workflow_task_completed_event_id: int
    namespace: str = ""
    workflow_execution: WorkflowExecution
    signal_name: str
    input: Payloads = ()
    child_workflow_only: bool = False
    """Only for a child of this run."""
    headers: Headers = {}


class SignalExternalWorkflowExecutionFailed(Tagged, frozen=True, kw_only=True):
    cause: SignalExternalWorkflowExecutionFailedCause
    workflow_task_completed_event_id: int
    namespace: str = ""
    workflow_execution: WorkflowExecution
    initiated_event_id: int


class ExternalWorkflowExecutionSignaled(Tagged, frozen=True, kw_only=True):
    """The signal is recorded at its target."""

    initiated_event_id: int
    namespace: str = ""
    workflow_execution: WorkflowExecution


class RequestCancelExternalWorkflowExecutionInitiated(Tagged, frozen=True, kw_only=True):
    """The run asked for the cancellation of another workflow."""

    workflow_task_completed_event_id: int
    namespace: str = ""
    workflow_execution: WorkflowExecution
    child_workflow_only: bool = False
    """Only for a child of this run."""
    reason: str = ""


class RequestCancelExternalWorkflowExecutionFailed(Tagged, frozen=True, kw_only=True):
    cause: CancelExternalWorkflowExecutionFailedCause
    workflow_task_completed_event_id: int
    namespace: str = ""
    workflow_execution: WorkflowExecution
    initiated_event_id: int


class ExternalWorkflowExecutionCancelRequested(Tagged, frozen=True, kw_only=True):
    """The request is recorded at its target, or the target needs none any more."""

    initiated_event_id: int
    namespace: str = ""
    workflow_execution: WorkflowExecution
