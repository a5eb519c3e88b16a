"""What is stored of a batch operation. Pure.

The list of workflows is stored once, in parts beside the job; the job, which is written with every burst, has only how
far it is.
"""

import re
from datetime import datetime

import msgspec
from stepwell.api import limits
from stepwell.api.batches import BatchFailure, BatchOperation, BatchOperationInfo
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import BatchOperationState, BatchOperationType
from stepwell.api.errors import PayloadTooLarge

PART = 250
"""Workflows in one part of a list: a quarter of a megabyte at most."""


class Target(msgspec.Struct, frozen=True, array_like=True):
    """One workflow, by the run that was the newest when its turn came where the caller named none."""

    workflow_id: str
    run_id: str
    tries: int = 0

    @property
    def execution(self) -> WorkflowExecution:
        return WorkflowExecution(workflow_id=self.workflow_id, run_id=self.run_id)


class Burst(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What somebody is doing now, and until when it is theirs to do. Then it is done again by another."""

    targets: tuple[Target, ...]
    until: datetime
    repeated: bool = False
    """Some of it may have been done by one that died."""


class Job(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Stored as it is, so new fields have defaults."""

    namespace: str
    id: str
    operation: BatchOperation
    reason: str = ""
    identity: str = ""
    rate: float
    query: str = ""
    listed: int = 0
    """Workflows in its list; 0: it has a filter."""
    started: datetime
    begun: bool = False
    """False while its start is under way: it does nothing until it has its turn in the namespace."""
    state: BatchOperationState = BatchOperationState.RUNNING
    closed: datetime | None = None
    close_reason: str = ""
    position: int = 0
    """In the list."""
    page_token: bytes = b""
    """Behind what was found by the filter so far."""
    exhausted: bool = False
    """There is nothing further in list or filter."""
    found: int = 0
    burst: Burst | None = None
    again: tuple[Target, ...] = ()
    """What could not be done for a moment."""
    next_at: datetime
    failing: int = 0
    """Bursts in a row that got nothing done."""
    done: int = 0
    failed: int = 0
    failures: tuple[BatchFailure, ...] = ()
    principal: str = ""
    """Who is known to have started it (MT-10)."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What comes next in list or filter."""

    targets: tuple[Target, ...]
    page_token: bytes = b""
    exhausted: bool


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a target: done, or why not; ``later``: not for the moment; ``left``: nobody got to it."""

    target: Target
    failure: BatchFailure | None = None
    later: bool = False
    left: bool = False


_encode = msgspec.msgpack.Encoder().encode
_decode_job = msgspec.msgpack.Decoder(Job).decode
_decode_part = msgspec.msgpack.Decoder(tuple[Target, ...]).decode


def encode(job: Job) -> bytes:
    return _encode(job)


def decode(value: bytes) -> Job:
    return _decode_job(value)


def encode_part(targets: tuple[Target, ...]) -> bytes:
    return _encode(targets)


def decode_part(value: bytes) -> tuple[Target, ...]:
    return _decode_part(value)


def type_of(operation: BatchOperation) -> BatchOperationType:
    words = re.findall("[A-Z][a-z]+", type(operation).__name__.removeprefix("Batch"))
    return BatchOperationType("_".join(words).upper())


def info_of(job: Job) -> BatchOperationInfo:
    return BatchOperationInfo(
        job_id=job.id,
        operation_type=type_of(job.operation),
        state=job.state,
        start_time=job.started,
        close_time=job.closed,
        total_operation_count=job.listed or job.found,
        complete_operation_count=job.done,
        failure_operation_count=job.failed,
        all_found=job.listed > 0 or job.exhausted or job.closed is not None,
    )


def check_size(job: Job) -> None:
    """Raises PayloadTooLarge."""
    size = len(encode(job))
    if size > limits.MAX_BATCH_BYTES:
        raise PayloadTooLarge(
            f"operation, query and reason together have {size} bytes, above the limit of {limits.MAX_BATCH_BYTES} for "
            "a batch; store the data elsewhere (a file or object store) and pass a reference",
            field="operation",
        )
