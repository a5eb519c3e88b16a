"""Updates: requests to workflow code that it may refuse, and that have a result."""

from datetime import timedelta

from ._struct import Record
from .common import Headers, WorkflowExecution
from .enums import WorkflowUpdateStage
from .payloads import Payloads
from .updates import UpdateOutcome


class UpdateWorkflowRequest(Record, frozen=True, kw_only=True):
    """Idempotent by ``update_id``: in one run, calls with the same id are the same update, and get its one outcome.
    Held until ``wait_for_stage`` is reached, at most for ``timeout``; then ask again."""

    namespace: str = "default"
    execution: WorkflowExecution
    first_execution_run_id: str = ""
    update_id: str
    update_name: str
    input: Payloads = ()
    identity: str = ""
    headers: Headers = {}
    wait_for_stage: WorkflowUpdateStage = WorkflowUpdateStage.COMPLETED
    timeout: timedelta | None = None


class UpdateWorkflowResponse(Record, frozen=True, kw_only=True):
    """``stage`` is the one that was reached, perhaps not yet the one that was asked for. A rejected update is at its
    end; its outcome is the failure."""

    run_id: str
    """The run that the update is in."""
    update_id: str
    stage: WorkflowUpdateStage
    outcome: UpdateOutcome | None = None
    """Set when ``stage`` is COMPLETED."""


class PollWorkflowUpdateRequest(Record, frozen=True, kw_only=True):
    """Waits for an update that was sent before. One that was rejected is not remembered."""

    namespace: str = "default"
    execution: WorkflowExecution
    update_id: str
    wait_for_stage: WorkflowUpdateStage = WorkflowUpdateStage.COMPLETED
    timeout: timedelta | None = None


class PollWorkflowUpdateResponse(Record, frozen=True, kw_only=True):
    """As :class:`UpdateWorkflowResponse`."""

    run_id: str
    update_id: str
    stage: WorkflowUpdateStage
    outcome: UpdateOutcome | None = None
