"""What a schedule does: start a workflow."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from ..api import schedules as wire
from ..api.common import UserMetadata
from ..api.payloads import Payload
from ..common import Priority, RawValue, RetryPolicy, WorkflowIDReusePolicy, retry_record
from ..converter import DataConverter, PayloadError
from ..converter.signatures import CallableSignature
from ..search_attributes import SearchAttributes, TypedSearchAttributes, first_of
from ..workflow.definition import workflow_reference
from .arguments import UNSET, arguments
from .texts import memo_of, text_of, texts


class ScheduleAction:
    """There is one kind, :class:`ScheduleActionStartWorkflow`."""

    def _to_record(self, converter: DataConverter) -> wire.ScheduleAction:
        raise TypeError(f"a schedule cannot do a {type(self).__name__}; use a ScheduleActionStartWorkflow")


class ScheduleActionStartWorkflow(ScheduleAction):
    """Start this workflow, given by its run method, its function, its class or its name. Options are those of
    ``Client.start_workflow``. The time at which it was due is appended to ``id``, unless the policy says to keep it.

    In a description, ``args`` and the values of ``memo`` and ``headers`` are payloads. What is left as it is goes back
    as it is with an update.
    """

    workflow: str
    args: Sequence[Any]
    id: str
    task_queue: str
    execution_timeout: timedelta | None
    run_timeout: timedelta | None
    task_timeout: timedelta | None
    id_reuse_policy: WorkflowIDReusePolicy
    retry_policy: RetryPolicy | None
    memo: Mapping[str, Any] | None
    typed_search_attributes: SearchAttributes
    """As of ``Client.start_workflow``; in a description, :class:`TypedSearchAttributes`."""
    static_summary: str | Payload | None
    """A payload in a description when it cannot be read here, as without the codec that it was written with."""
    static_details: str | Payload | None
    start_delay: timedelta | None
    headers: Mapping[str, Payload] | None
    priority: Priority

    def __init__(
        self,
        workflow: Any,
        arg: Any = UNSET,
        *more: Any,
        args: Sequence[Any] = (),
        id: str,
        task_queue: str,
        execution_timeout: timedelta | None = None,
        run_timeout: timedelta | None = None,
        task_timeout: timedelta | None = None,
        id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        retry_policy: RetryPolicy | None = None,
        memo: Mapping[str, Any] | None = None,
        typed_search_attributes: SearchAttributes = (),
        static_summary: str | Payload | None = None,
        static_details: str | Payload | None = None,
        start_delay: timedelta | None = None,
        headers: Mapping[str, Payload] | None = None,
        priority: Priority = Priority.default,
    ) -> None:
        self.workflow, self._signature = workflow_reference(workflow)
        self._signature_of = self.workflow
        self.args = arguments(arg, args, more)
        self.id = id
        self.task_queue = task_queue
        self.execution_timeout = execution_timeout
        self.run_timeout = run_timeout
        self.task_timeout = task_timeout
        self.id_reuse_policy = id_reuse_policy
        self.retry_policy = retry_policy
        self.memo = memo
        self.typed_search_attributes = typed_search_attributes
        self.static_summary = static_summary
        self.static_details = static_details
        self.start_delay = start_delay
        self.headers = headers
        self.priority = priority

    def __repr__(self) -> str:
        return f"<ScheduleActionStartWorkflow {self.workflow} {self.id!r} on {self.task_queue!r}>"

    def _to_record(self, converter: DataConverter) -> wire.ScheduleAction:
        priority: object = self.priority
        if not isinstance(priority, Priority):
            raise TypeError(f"priority must be a Priority, not {type(priority).__name__}")
        memo = {name: _raw(value) for name, value in self.memo.items()} if self.memo else self.memo
        return wire.ScheduleAction(
            start_workflow=wire.NewWorkflowExecutionInfo(
                workflow_id=self.id,
                workflow_type=self.workflow,
                task_queue=self.task_queue,
                input=self._encoding().encode(converter.payload_converter, [_raw(value) for value in self.args]),
                workflow_execution_timeout=self.execution_timeout,
                workflow_run_timeout=self.run_timeout,
                workflow_task_timeout=self.task_timeout,
                workflow_id_reuse_policy=self.id_reuse_policy,
                memo=memo_of(converter, memo),
                search_attributes=first_of("typed_search_attributes", self.typed_search_attributes),
                headers=dict(self.headers or {}),
                retry_policy=retry_record(self.retry_policy, "workflow", self.id),
                workflow_start_delay=self.start_delay,
                user_metadata=self._texts(converter),
                priority=priority.to_record(),
            )
        )

    def _texts(self, converter: DataConverter) -> UserMetadata | None:
        summary, details = self.static_summary, self.static_details
        raw_summary = summary if isinstance(summary, Payload) else None
        raw_details = details if isinstance(details, Payload) else None
        written = texts(
            converter,
            None if isinstance(summary, Payload) else summary,
            None if isinstance(details, Payload) else details,
        )
        if raw_summary is None and raw_details is None:
            return written
        written = written or UserMetadata()
        return UserMetadata(summary=raw_summary or written.summary, details=raw_details or written.details)

    def _encoding(self) -> CallableSignature:
        """By the signature of what was given, unless another workflow was named since then."""
        return self._signature if self.workflow == self._signature_of else workflow_reference(self.workflow)[1]

    @classmethod
    def _from_record(cls, record: wire.ScheduleAction, converter: DataConverter) -> ScheduleAction:
        start = record.start_workflow
        if start is None:
            return ScheduleAction()  # of a kind that this release does not know
        metadata = start.user_metadata
        return cls(
            start.workflow_type,
            args=list(start.input),
            id=start.workflow_id,
            task_queue=start.task_queue,
            execution_timeout=start.workflow_execution_timeout,
            run_timeout=start.workflow_run_timeout,
            task_timeout=start.workflow_task_timeout,
            id_reuse_policy=start.workflow_id_reuse_policy,
            retry_policy=None if start.retry_policy is None else RetryPolicy.from_record(start.retry_policy),
            memo=dict(start.memo) or None,
            typed_search_attributes=TypedSearchAttributes.of_payloads(start.search_attributes),
            static_summary=None if metadata is None else _text(converter, metadata.summary),
            static_details=None if metadata is None else _text(converter, metadata.details),
            start_delay=start.workflow_start_delay,
            headers=dict(start.headers) or None,
            priority=Priority.from_record(start.priority),
        )


def _raw(value: Any) -> Any:
    return RawValue(value) if isinstance(value, Payload) else value


def _text(converter: DataConverter, payload: Payload | None) -> str | Payload | None:
    try:
        return text_of(converter, payload)
    except PayloadError:
        return payload
