"""Who polls, lists of them, and that one stops."""

from datetime import datetime

from ._struct import Record
from .common import ProcessIdentity
from .enums import TaskQueueKind


class WorkerInfo(Record, frozen=True, kw_only=True):
    """Said with each poll and each completion."""

    identity: str
    build_id: str = ""
    process: ProcessIdentity | None = None
    worker_key: str = ""
    """Random id of this Worker object; workflow tasks of runs it has cached are offered to it first."""
    shown_completed: bool = False
    """The events of its workflow tasks begin with the last WorkflowTaskCompleted itself, where there is one."""


class WorkerListEntry(Record, frozen=True, kw_only=True):
    """What is known of a worker by what it polls of one task queue."""

    identity: str
    task_queue: str
    kinds: tuple[TaskQueueKind, ...]
    last_poll_time: datetime
    """Now, while a poll is open; where several processes serve workers, up to a minute old."""
    worker_key: str = ""
    """Of this Worker object. Like the build id not known of workers that another process has heard."""
    build_id: str = ""


class ListWorkersRequest(Record, frozen=True, kw_only=True):
    """Workers that poll now or did in the last five minutes. All filters that are given must hold."""

    namespace: str = "default"
    task_queue: str = ""
    """Empty: all of them. Must be given on AWS where a namespace has more than 10,000 workers."""
    identity: str = ""
    identity_prefix: str = ""
    page_size: int = 0
    next_page_token: bytes = b""


class ListWorkersResponse(Record, frozen=True, kw_only=True):
    """By task queue and identity."""

    workers: tuple[WorkerListEntry, ...] = ()
    next_page_token: bytes = b""


class ShutdownWorkerRequest(Record, frozen=True, kw_only=True):
    """The worker stops: its open polls end empty, and it is offered nothing more (TQ-07)."""

    namespace: str = "default"
    task_queue: str
    worker: WorkerInfo


class ShutdownWorkerResponse(Record, frozen=True, kw_only=True):
    pass
