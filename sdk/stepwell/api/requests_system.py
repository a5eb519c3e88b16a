"""Task queues, and the server itself."""

from datetime import datetime, timedelta

from ._struct import Record
from .enums import TaskQueueKind


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


class GetSystemInfoRequest(Record, frozen=True, kw_only=True):
    pass


class GetSystemInfoResponse(Record, frozen=True, kw_only=True):
    server_version: str
    database: str = ""
    """Where data is kept, for people; such as a path, or ``memory``."""
    default_retention: timedelta | None = None
