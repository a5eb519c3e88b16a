"""What a batch operation can do to each of its workflows (LC-43)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from ..api import batches as b
from ..api.enums import ResetReapplyExcludeType, ResetType
from ..api.payloads import Payloads
from ..api.requests import ActivityOptionsChange, PostResetOperation, PostResetSignal, WorkflowExecutionOptions
from ..common import Priority
from ..converter.signatures import CallableSignature
from ..workflow.definition import signal_reference


class Encoder(Protocol):
    """Makes payloads of values; the client does. Raises ``ArgumentError``, :class:`RPCError`."""

    def arguments(self, signature: CallableSignature, args: Sequence[Any]) -> Payloads: ...

    def values(self, values: Sequence[Any], what: str) -> Payloads: ...


@dataclass(frozen=True)
class BatchTerminate:
    """End workflows at once. Of a filter: those that are open, paused ones too. ``details`` are kept."""

    details: Sequence[Any] = ()

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        return b.BatchTerminate(details=encoder.values(self.details, "termination details"))


@dataclass(frozen=True)
class BatchCancel:
    """Ask workflows to stop. Of a filter: those that are open."""

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        return b.BatchCancel()


@dataclass(frozen=True)
class BatchSignal:
    """Send a signal, by method or by name, once to each run. Of a filter: those that are open."""

    signal: str | Callable[..., Any]
    args: Sequence[Any] = ()

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        name, signature = signal_reference(self.signal)
        return b.BatchSignal(signal_name=name, input=encoder.arguments(signature, self.args))


@dataclass(frozen=True)
class BatchDelete:
    """Delete runs, open or closed; an open one is terminated first."""

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        return b.BatchDelete()


@dataclass(frozen=True)
class BatchReset:
    """Go back to an earlier workflow task, as in ``WorkflowHandle.reset``. Runs that the batch makes are not reset."""

    reset_type: ResetType = ResetType.LAST_WORKFLOW_TASK
    build_id: str = ""
    current_run_only: bool = False
    exclude: Sequence[ResetReapplyExcludeType] = ()
    signals: Sequence[tuple[str | Callable[..., Any], Sequence[Any]]] = ()
    """Each by method or by name with its arguments, before the new run's first workflow task."""

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        operations = []
        for signal, args in self.signals:
            name, signature = signal_reference(signal)
            sent = PostResetSignal(signal_name=name, input=encoder.arguments(signature, args))
            operations.append(PostResetOperation(signal_workflow=sent))
        return b.BatchReset(
            reset_type=self.reset_type,
            build_id=self.build_id,
            current_run_only=self.current_run_only,
            reset_reapply_exclude_types=tuple(self.exclude),
            post_reset_operations=tuple(operations),
        )


@dataclass(frozen=True)
class BatchUpdatePriority:
    """Change the priority of what comes from now on. Of a filter: those that are open."""

    priority: Priority

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        options = WorkflowExecutionOptions(priority=self.priority.to_record())
        return b.BatchUpdateOptions(workflow_execution_options=options, update_mask="priority")


@dataclass(frozen=True)
class BatchUnpause:
    """Let paused workflows go on."""

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        return b.BatchUnpause()


@dataclass(frozen=True)
class BatchUnpauseActivities:
    """As ``WorkflowHandle.unpause_activity`` does it to all pending activities of a type."""

    activity_type: str
    reset_attempts: bool = False
    reset_heartbeat: bool = False
    jitter: timedelta | None = None

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        return b.BatchUnpauseActivities(
            activity_type=self.activity_type,
            reset_attempts=self.reset_attempts,
            reset_heartbeat=self.reset_heartbeat,
            jitter=self.jitter,
        )


@dataclass(frozen=True)
class BatchResetActivities:
    """As ``WorkflowHandle.reset_activity`` does it to all pending activities of a type."""

    activity_type: str
    keep_paused: bool = False
    reset_heartbeat: bool = False
    restore_original_options: bool = False
    jitter: timedelta | None = None

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        return b.BatchResetActivities(
            activity_type=self.activity_type,
            keep_paused=self.keep_paused,
            reset_heartbeat=self.reset_heartbeat,
            restore_original_options=self.restore_original_options,
            jitter=self.jitter,
        )


@dataclass(frozen=True)
class BatchUpdateActivityOptions:
    """As ``WorkflowHandle.update_activity_options`` does it to all pending activities of a type."""

    activity_type: str
    task_queue: str = ""
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_initial_interval: timedelta | None = None
    retry_backoff_coefficient: float | None = None
    retry_maximum_interval: timedelta | None = None
    retry_maximum_attempts: int | None = None
    restore_original: bool = False

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        options = ActivityOptionsChange(
            task_queue=self.task_queue,
            schedule_to_close_timeout=self.schedule_to_close_timeout,
            schedule_to_start_timeout=self.schedule_to_start_timeout,
            start_to_close_timeout=self.start_to_close_timeout,
            heartbeat_timeout=self.heartbeat_timeout,
            retry_initial_interval=self.retry_initial_interval,
            retry_backoff_coefficient=self.retry_backoff_coefficient,
            retry_maximum_interval=self.retry_maximum_interval,
            retry_maximum_attempts=self.retry_maximum_attempts,
            restore_original=self.restore_original,
        )
        return b.BatchUpdateActivityOptions(activity_type=self.activity_type, options=options)


@dataclass(frozen=True)
class BatchTerminateActivities:
    """End stand-alone activities at once. They are listed by id, with or without run, or found by a filter of
    activities: then those that run."""

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        return b.BatchTerminateActivities()


@dataclass(frozen=True)
class BatchCancelActivities:
    """Ask stand-alone activities to stop, as for :class:`BatchTerminateActivities`."""

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        return b.BatchCancelActivities()


@dataclass(frozen=True)
class BatchDeleteActivities:
    """Delete stand-alone activities; one that runs is terminated first."""

    def _record(self, encoder: Encoder) -> b.BatchOperation:
        return b.BatchDeleteActivities()


BatchAction = (
    BatchTerminate
    | BatchCancel
    | BatchSignal
    | BatchDelete
    | BatchReset
    | BatchUpdatePriority
    | BatchUnpause
    | BatchUnpauseActivities
    | BatchResetActivities
    | BatchUpdateActivityOptions
    | BatchTerminateActivities
    | BatchCancelActivities
    | BatchDeleteActivities
)
