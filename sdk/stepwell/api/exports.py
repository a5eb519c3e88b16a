"""Exports: histories of closed runs written as objects, in the background (LC-47)."""

from datetime import datetime

from ._struct import Record
from .common import WorkflowExecution
from .enums import ExportState


class ExportFailure(Record, frozen=True, kw_only=True):
    """Why a run was not written."""

    execution: WorkflowExecution
    code: str
    message: str = ""


class ExportInfo(Record, frozen=True, kw_only=True):
    """How far an export is."""

    job_id: str
    state: ExportState
    start_time: datetime
    close_time: datetime | None = None
    exported_count: int = 0
    failure_count: int = 0
    exported_bytes: int = 0
    exported_until: datetime | None = None
    """All runs that closed before then are written, or among the failures."""
    location: str = ""
    """Where the objects are: a folder of the server, or ``s3://…``."""
