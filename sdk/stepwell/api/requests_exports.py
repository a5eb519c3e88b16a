"""Start an export of histories, see how far it is, stop it (LC-47)."""

from datetime import datetime

from ._struct import Record
from .enums import ExportFormat
from .exports import ExportFailure, ExportInfo


class StartExportRequest(Record, frozen=True, kw_only=True):
    """Writes the history of each run that a filter finds and that closed in a window, once, as an object of its own,
    and a list of all. A repeat with the same ``job_id`` and content changes nothing."""

    namespace: str = "default"
    job_id: str
    destination: str
    """Names of folders with ``/`` between, below the place that the installation has for exports of the namespace."""
    query: str = ""
    """As in ListWorkflows. Empty: all."""
    closed_after: datetime | None = None
    """This time or later; None: from the first on that is kept."""
    closed_before: datetime | None = None
    """Earlier than this; None: than now. May be to come."""
    continuous: bool = False
    """It has no end: what closes later is written as well, within minutes (on AWS within two hours), until it is
    stopped. Without ``closed_before``."""
    format: ExportFormat = ExportFormat.JSON_LINES_GZIP
    identity: str = ""


class StartExportResponse(Record, frozen=True, kw_only=True):
    location: str = ""


class DescribeExportRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    job_id: str


class DescribeExportResponse(Record, frozen=True, kw_only=True):
    info: ExportInfo
    destination: str = ""
    query: str = ""
    closed_after: datetime | None = None
    closed_before: datetime | None = None
    continuous: bool = False
    format: ExportFormat = ExportFormat.JSON_LINES_GZIP
    identity: str = ""
    close_reason: str = ""
    """Why it is over, unless all is written."""
    trouble: str = ""
    """Why it does not get on for the moment; it tries again."""
    failures: tuple[ExportFailure, ...] = ()
    """The first 50; the list that it writes has all."""


class StopExportRequest(Record, frozen=True, kw_only=True):
    """What is written stays. Of one that is over already nothing changes."""

    namespace: str = "default"
    job_id: str
    reason: str = ""
    identity: str = ""


class StopExportResponse(Record, frozen=True, kw_only=True):
    pass


class ListExportsRequest(Record, frozen=True, kw_only=True):
    """In the order of job ids. Those that are over are kept for a week."""

    namespace: str = "default"
    page_size: int = 0
    next_page_token: bytes = b""


class ListExportsResponse(Record, frozen=True, kw_only=True):
    exports: tuple[ExportInfo, ...] = ()
    next_page_token: bytes = b""
