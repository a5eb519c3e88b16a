"""Updates: requests to workflow code that it may refuse, and that have a result."""

from datetime import timedelta

from ._struct import Record
from .common import Headers, WorkflowExecution
from .enums import WorkflowUpdateStage
from .payloads import Payloads
from .requests_workflow import StartWorkflowRequest
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


class UpdateWithStartWorkflowRequest(StartWorkflowRequest, frozen=True, kw_only=True):
    """Starts the workflow unless it is open, and sends it the update, in one step (MS-32). A repeat has the same
    ``request_id`` and ``update_id``. The conflict policy says what becomes of an open run: FAIL refuses the call,
    USE_EXISTING sends the update there."""

    update_id: str
    update_name: str
    update_input: Payloads = ()
    update_headers: Headers = {}
    wait_for_stage: WorkflowUpdateStage = WorkflowUpdateStage.COMPLETED
    timeout: timedelta | None = None


class UpdateWithStartWorkflowResponse(Record, frozen=True, kw_only=True):
    """As :class:`UpdateWorkflowResponse`, and what became of the start."""

    run_id: str
    update_id: str
    stage: WorkflowUpdateStage
    outcome: UpdateOutcome | None = None
    started: bool = True
    """False when the run was there already."""
    first_execution_run_id: str = ""
