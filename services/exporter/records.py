"""What is stored of an export: the job, which is written with every burst, and says how far it is. Pure."""

from datetime import datetime

import msgspec
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ExportFormat, ExportState
from stepwell.api.exports import ExportFailure, ExportInfo


class Target(msgspec.Struct, frozen=True, array_like=True):
    """One closed run."""

    workflow_id: str
    run_id: str
    workflow_type: str
    status: str
    start_time: datetime
    close_time: datetime | None
    tries: int = 0

    @property
    def execution(self) -> WorkflowExecution:
        return WorkflowExecution(workflow_id=self.workflow_id, run_id=self.run_id)


class Burst(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What somebody is writing now, and until when it is theirs to do. Then it is done again by another."""

    targets: tuple[Target, ...]
    until: datetime


class Job(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Stored as it is, so new fields have defaults."""

    namespace: str
    id: str
    destination: str
    format: ExportFormat
    query: str = ""
    closed_after: datetime | None = None
    closed_before: datetime | None = None
    """None: it goes on until it is stopped."""
    identity: str = ""
    started: datetime
    state: ExportState = ExportState.RUNNING
    closed: datetime | None = None
    close_reason: str = ""
    upto: datetime | None = None
    """What closed before this time is written; None: nothing yet."""
    slice_end: datetime | None = None
    """Now those are written that closed from ``upto`` until this time."""
    page_token: bytes = b""
    exhausted: bool = False
    """There are no more in the slice."""
    burst: Burst | None = None
    again: tuple[Target, ...] = ()
    """What could not be read for a moment."""
    next_at: datetime
    failing: int = 0
    """Bursts in a row that got nothing done."""
    trouble: str = ""
    """Why the last one did not."""
    done: int = 0
    size: int = 0
    failed: int = 0
    failures: tuple[ExportFailure, ...] = ()


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a run: where it is, or why not; ``later``: not for the moment; ``left``: nobody got to it."""

    target: Target
    object: str = ""
    events: int = 0
    size: int = 0
    sha256: str = ""
    failure: ExportFailure | None = None
    later: bool = False
    left: bool = False


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Job).decode


def encode(job: Job) -> bytes:
    return _encode(job)


def decode(value: bytes) -> Job:
    return _decode(value)


def info_of(job: Job, location: str) -> ExportInfo:
    return ExportInfo(
        job_id=job.id,
        state=job.state,
        start_time=job.started,
        close_time=job.closed,
        exported_count=job.done,
        failure_count=job.failed,
        exported_bytes=job.size,
        exported_until=job.upto,
        location=location,
    )
