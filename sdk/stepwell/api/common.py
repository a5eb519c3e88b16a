"""Records that several operations share."""

from datetime import timedelta

from ._struct import Record
from .payloads import Payload


class WorkflowExecution(Record, frozen=True, kw_only=True):
    """Names a workflow execution; an empty ``run_id`` means the newest run of the id."""

    workflow_id: str
    run_id: str = ""


class UserMetadata(Record, frozen=True, kw_only=True):
    """What people read in a history (PM-27); never used by the engine or by replay."""

    summary: Payload | None = None
    details: Payload | None = None


class RetryPolicy(Record, frozen=True, kw_only=True):
    """Defaults of AC-09: 1 s, factor 2.0, at most 100 x the first interval, unlimited attempts (0)."""

    initial_interval: timedelta = timedelta(seconds=1)
    backoff_coefficient: float = 2.0
    maximum_interval: timedelta | None = None
    maximum_attempts: int = 0
    non_retryable_error_types: tuple[str, ...] = ()


class Priority(Record, frozen=True, kw_only=True):
    """Which of the tasks that wait in a task queue go out first (TQ-12, TQ-13). What is not given is inherited: by an
    activity or a child from its workflow, by a workflow from the defaults."""

    priority_key: int = 0
    """1 to 5, lower first; 0: not given, 3 in the end."""
    fairness_key: str = ""
    """Keys of one priority take turns; at most 64 bytes."""
    fairness_weight: float = 0.0
    """A key of weight 2 gets two turns for one of weight 1; 0: not given, 1 in the end."""


def inherited(parent: Priority | None, own: Priority | None) -> Priority | None:
    """``own`` with what it leaves open taken from ``parent``."""
    if own is None or parent is None:
        return own if parent is None else parent
    return Priority(
        priority_key=own.priority_key or parent.priority_key,
        fairness_key=own.fairness_key or parent.fairness_key,
        fairness_weight=own.fairness_weight or parent.fairness_weight,
    )


class ProcessIdentity(Record, frozen=True, kw_only=True):
    """Where a worker runs, exactly enough to prove later that it is gone (ADR 0004).

    ``machine`` is the kernel's boot id and process namespace; two processes with the same ``machine``
    can see each other's ``pid``, and ``started`` (opaque) tells a reused pid from the old one.
    """

    machine: str
    pid: int
    started: str


class SdkMetadata(Record, frozen=True, kw_only=True):
    """What the SDK noted with a workflow task: logic flags first used in it (VE-22), names and versions."""

    flags: tuple[int, ...] = ()
    sdk_name: str = ""
    sdk_version: str = ""
    core_flags: tuple[int, ...] = ()
    """Of an SDK that is made of two parts, those of the part that all its languages share."""


Memo = dict[str, Payload]
Headers = dict[str, Payload]
