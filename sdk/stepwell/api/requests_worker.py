"""Who polls, and that it stops."""

from ._struct import Record
from .common import ProcessIdentity


class WorkerInfo(Record, frozen=True, kw_only=True):
    """Said with each poll and each completion."""

    identity: str
    build_id: str = ""
    process: ProcessIdentity | None = None
    worker_key: str = ""
    """Random id of this Worker object; workflow tasks of runs it has cached are offered to it first."""
    shown_completed: bool = False
    """The events of its workflow tasks begin with the last WorkflowTaskCompleted itself, where there is one."""


class ShutdownWorkerRequest(Record, frozen=True, kw_only=True):
    """The worker stops: its open polls end empty, and it is offered nothing more (TQ-07)."""

    namespace: str = "default"
    task_queue: str
    worker: WorkerInfo


class ShutdownWorkerResponse(Record, frozen=True, kw_only=True):
    pass
