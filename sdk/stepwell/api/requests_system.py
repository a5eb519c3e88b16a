"""Task queues, and the server itself."""

from datetime import datetime, timedelta

from ._struct import Record
from .enums import TaskQueueKind
from .requests_worker import WorkerInfo


class PollerInfo(Record, frozen=True, kw_only=True):
    identity: str
    last_access_time: datetime


class DescribeTaskQueueRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    task_queue: str
    kind: TaskQueueKind = TaskQueueKind.WORKFLOW


class DescribeTaskQueueResponse(Record, frozen=True, kw_only=True):
    pollers: tuple[PollerInfo, ...] = ()
    backlog_count: int = 0


class GetTaskSourcesRequest(Record, frozen=True, kw_only=True):
    """Asked by a worker before it polls, and once a minute while it does: then it is known to serve the queue."""

    namespace: str = "default"
    task_queue: str
    worker: WorkerInfo | None = None
    called_by_queue: bool = False
    """The worker is a function that the message queues call: it serves them also while nobody hears of it."""


class GetTaskSourcesResponse(Record, frozen=True, kw_only=True):
    """Message queues (URLs, one for each partition) in which the hints for a task queue wait: what is received there
    goes to StartWorkflowTask or StartActivityTask. Empty: this engine answers polls itself."""

    workflow_queues: tuple[str, ...] = ()
    activity_queues: tuple[str, ...] = ()


class GetSystemInfoRequest(Record, frozen=True, kw_only=True):
    pass


class GetSystemInfoResponse(Record, frozen=True, kw_only=True):
    server_version: str
    database: str = ""
    """Where data is kept, for people; such as a path, or ``memory``."""
    default_retention: timedelta | None = None
