"""One operation of the API: its name, its path, its records."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

Req = TypeVar("Req")
Resp = TypeVar("Resp")


@dataclass(frozen=True, slots=True)
class Operation(Generic[Req, Resp]):
    """One operation. ``long_poll``: the server may hold the call up to the request's ``timeout``.
    ``idempotent``: a client may repeat it after a broken connection without asking."""

    name: str
    path: str
    request_type: type[Req]
    response_type: type[Resp]
    long_poll: bool = False
    idempotent: bool = True

    def url_path(self, request: Any) -> str:
        """The path for this request, its parts percent-encoded."""
        if "{" not in self.path:
            return self.path
        execution = getattr(request, "execution", None)
        workflow_id = execution.workflow_id if execution is not None else getattr(request, "workflow_id", "")
        return self.path.format(
            namespace=_segment(getattr(request, "namespace", "")),
            workflow_id=_segment(workflow_id),
            workflow_type=_segment(getattr(request, "workflow_type", "")),
            task_queue=_segment(getattr(request, "task_queue", "")),
            schedule_id=_segment(getattr(request, "schedule_id", "")),
            activity_id=_segment(getattr(request, "activity_id", "")),
        )


def _segment(text: str) -> str:
    """``.`` and ``..`` mean other paths when they are not encoded; the server then refuses them by name.
    A lone surrogate is no text and goes into the path as ``?``, so that the body is refused and not the call."""
    if text in (".", ".."):
        return text.replace(".", "%2E")
    return quote(text, safe="", errors="replace")
