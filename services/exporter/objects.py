"""Names and contents of what an export writes. Pure, so what is written again is the same.

{namespace}/{destination}/histories/{workflow id}.{hash}.jsonl.gz   one run
{namespace}/{destination}/jobs/{job}.{start}/00000002.jsonl         what was written, a run a line, and what was not
{namespace}/{destination}/jobs/{job}.{start}/manifest.json          written last: all in all
"""

import hashlib
import zlib
from collections.abc import Iterable, Sequence

from stepwell.api.codec import encode_json
from stepwell.api.enums import ExportFormat
from stepwell.api.events import HistoryEvent

from ..history.run_blobs import quoted
from .records import Done, Job, Target

_SHOWN = 80
_ENDINGS = {ExportFormat.JSON: "json", ExportFormat.JSON_LINES_GZIP: "jsonl.gz"}
_GZIP = 31
"""Window bits of zlib that make a gzip file, whose header has no time."""


def prefix_of(job: Job) -> str:
    return f"{_name(job.namespace)}/{job.destination}/"


def list_prefix(job: Job) -> str:
    return f"{prefix_of(job)}jobs/{_name(job.id)}.{job.started:%Y%m%dT%H%M%S.%f}/"


def history_name(job: Job, target: Target) -> str:
    """Under the prefix of the job. Of one run in all exports to that place."""
    said = "\0".join((job.namespace, target.workflow_id, target.run_id)).encode()
    digest = hashlib.blake2b(said, digest_size=16).hexdigest()
    return f"histories/{_safe(target.workflow_id)}.{digest}.{_ENDINGS[job.format]}"


def _name(text: str) -> str:
    """A part of a path for an id: as it is while it is plain, else told apart by its hash."""
    safe = _safe(text)
    if safe == text:
        return text
    return f"{safe}.{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def _safe(text: str) -> str:
    """Neither hidden nor a way out of the folder."""
    safe = quoted(text)[:_SHOWN]
    return safe if safe[0].isalnum() else f"={ord(safe[0]):02X}{safe[1:]}"


class Content:
    """A history's bytes, made page by page: never all of it as text at once."""

    def __init__(self, format: ExportFormat, workflow_id: str) -> None:
        self.events = 0
        self._lines = format is ExportFormat.JSON_LINES_GZIP
        self._zip = zlib.compressobj(wbits=_GZIP) if self._lines else None
        self._parts: list[bytes] = []
        if not self._lines:
            self._parts.append(b'{"workflow_id":' + encode_json(workflow_id) + b',"events":[')

    def add(self, events: Sequence[HistoryEvent]) -> None:
        if self._zip is not None:
            self._parts.append(self._zip.compress(b"".join([encode_json(event) + b"\n" for event in events])))
        elif events:
            before = b"," if self.events else b""
            self._parts.append(before + b",".join(map(encode_json, events)))
        self.events += len(events)

    def end(self) -> bytes:
        self._parts.append(self._zip.flush() if self._zip is not None else b"]}")
        return b"".join(self._parts)


def lines_of(outcomes: Iterable[Done]) -> bytes:
    return b"".join([encode_json(_line(outcome)) + b"\n" for outcome in outcomes])


def _line(outcome: Done) -> dict[str, object]:
    target = outcome.target
    line: dict[str, object] = {
        "workflow_id": target.workflow_id,
        "run_id": target.run_id,
        "workflow_type": target.workflow_type,
        "status": target.status,
        "start_time": target.start_time,
        "close_time": target.close_time,
    }
    if outcome.failure is not None:
        return line | {"error": {"code": outcome.failure.code, "message": outcome.failure.message}}
    return line | {
        "object": outcome.object,
        "events": outcome.events,
        "bytes": outcome.size,
        "sha256": outcome.sha256,
    }


def manifest_of(job: Job) -> bytes:
    return encode_json(
        {
            "job_id": job.id,
            "namespace": job.namespace,
            "query": job.query,
            "closed_after": job.closed_after,
            "closed_before": job.closed_before,
            "format": job.format,
            "started": job.started,
            "exported": job.done,
            "bytes": job.size,
            "failed": job.failed,
        }
    )


def part_name(number: int) -> str:
    """``number``: the version of the job's record that claimed the burst, so that who comes late with one that was
    written again by another overwrites nothing."""
    return f"{number:08d}.jsonl"
