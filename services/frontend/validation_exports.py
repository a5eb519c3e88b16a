"""What requests about exports must be like (LC-47). A destination never leads out of the place for exports."""

import re
from datetime import datetime

from stepwell.api import requests as r
from stepwell.api.errors import InvalidArgument
from stepwell.api.limits import MAX_LIST_PAGE

from . import fields

_DEFAULT_PAGE = 100
_MAX_DESTINATION = 200
_FOLDERS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


def start_export(request: r.StartExportRequest) -> None:
    job(request.namespace, request.job_id)
    fields.text("identity", request.identity)
    fields.identifier("destination", request.destination, _MAX_DESTINATION)
    if not _FOLDERS.fullmatch(request.destination):
        raise InvalidArgument(
            f"destination is {request.destination!r}; give names of folders with '/' between, each of the letters a to "
            "z, digits, '.', '_' and '-', and beginning with a letter or a digit: it is a place below the one that the "
            "installation has for exports",
            field="destination",
        )
    for name in ("closed_after", "closed_before"):
        _time(name, getattr(request, name))
    if request.continuous and request.closed_before is not None:
        raise InvalidArgument(
            "closed_before is given, and continuous, which has no end; leave one of them out", field="closed_before"
        )
    after, before = request.closed_after, request.closed_before
    if after is not None and before is not None and after >= before:
        raise InvalidArgument(
            f"closed_before is {before.isoformat()}, not later than closed_after; there is nothing between",
            field="closed_before",
        )


def _time(field: str, value: datetime | None) -> None:
    if value is not None and value.tzinfo is None:
        raise InvalidArgument(f"{field} is {value.isoformat()}, without a zone; write it with 'Z'", field=field)


def stop_export(request: r.StopExportRequest) -> None:
    job(request.namespace, request.job_id)
    fields.text("reason", request.reason)
    fields.text("identity", request.identity)


def list_exports(request: r.ListExportsRequest) -> tuple[str, int]:
    """The job id behind which to begin, and how many to list."""
    fields.namespace(request.namespace)
    fields.count("page_size", request.page_size, MAX_LIST_PAGE, way_out="ask for less and read on")
    after = fields.id_token("ListExports", request.next_page_token)
    return after, min(request.page_size or _DEFAULT_PAGE, MAX_LIST_PAGE)


def job(namespace: str, job_id: str) -> None:
    fields.namespace(namespace)
    fields.identifier("job_id", job_id)
