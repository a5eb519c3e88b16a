"""Start a batch operation, see how far it is, stop it (LC-43, LC-44)."""

from ._struct import Record
from .batches import BatchFailure, BatchOperation, BatchOperationInfo
from .common import WorkflowExecution


class StartBatchOperationRequest(Record, frozen=True, kw_only=True):
    """For the workflows that are listed, or those that a filter finds: exactly one of the two. One batch runs at a time
    in a namespace. A repeat with the same ``job_id`` and content changes nothing."""

    namespace: str = "default"
    job_id: str
    operation: BatchOperation
    executions: tuple[WorkflowExecution, ...] = ()
    """At most 1,000; without run id, the newest run when its turn comes."""
    query: str = ""
    """As in ListWorkflows."""
    reason: str = ""
    identity: str = ""
    max_operations_per_second: float = 0.0
    """At most 50, which 0 means too."""


class StartBatchOperationResponse(Record, frozen=True, kw_only=True):
    pass


class DescribeBatchOperationRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    job_id: str


class DescribeBatchOperationResponse(Record, frozen=True, kw_only=True):
    info: BatchOperationInfo
    query: str = ""
    reason: str = ""
    identity: str = ""
    max_operations_per_second: float = 0.0
    close_reason: str = ""
    """Why it is over, unless it was done with all."""
    failures: tuple[BatchFailure, ...] = ()
    """The first 50."""


class StopBatchOperationRequest(Record, frozen=True, kw_only=True):
    """What is done stays done. Of one that is over already nothing changes."""

    namespace: str = "default"
    job_id: str
    reason: str = ""
    identity: str = ""


class StopBatchOperationResponse(Record, frozen=True, kw_only=True):
    pass


class ListBatchOperationsRequest(Record, frozen=True, kw_only=True):
    """In the order of job ids. Those that are over are kept for a week."""

    namespace: str = "default"
    page_size: int = 0
    next_page_token: bytes = b""


class ListBatchOperationsResponse(Record, frozen=True, kw_only=True):
    operations: tuple[BatchOperationInfo, ...] = ()
    next_page_token: bytes = b""
