"""What describe and list show of workflow executions."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from ..api.callbacks import CallbackInfo
from ..api.enums import WorkflowExecutionStatus
from ..api.requests import (
    DescribeWorkflowResponse,
    PendingActivityInfo,
    PendingChildInfo,
    PendingTimerInfo,
    PendingWorkflowTaskInfo,
    WorkflowExecutionInfo,
)
from ..converter import DataConverter
from ..search_attributes import TypedSearchAttributes
from .texts import text_of


class WorkflowExecution:
    """One row of a list. Times are UTC."""

    def __init__(self, info: WorkflowExecutionInfo, converter: DataConverter) -> None:
        self.raw_info = info
        self.id = info.execution.workflow_id
        self.run_id = info.execution.run_id
        self.workflow_type = info.workflow_type
        self.task_queue = info.task_queue
        self.status: WorkflowExecutionStatus = info.status
        self.start_time: datetime = info.start_time
        self.close_time: datetime | None = info.close_time
        self.history_length = info.history_length
        parent, root = info.parent_execution, info.root_execution
        self.parent_id: str | None = None if parent is None else parent.workflow_id
        """None for a workflow that is nobody's child; lists do not show it."""
        self.parent_run_id: str | None = None if parent is None else parent.run_id
        self.root_id: str | None = None if root is None else root.workflow_id
        """None when it is this workflow."""
        self.root_run_id: str | None = None if root is None else root.run_id
        self._converter = converter

    async def memo(self) -> dict[str, Any]:
        """The decoded memo."""
        converter = self._converter.payload_converter
        return {key: converter.from_payload(payload) for key, payload in self.raw_info.memo.items()}

    @property
    def typed_search_attributes(self) -> TypedSearchAttributes:
        """By what it can be found."""
        return TypedSearchAttributes.of_payloads(self.raw_info.search_attributes)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.workflow_type} {self.id!r} run {self.run_id} {self.status}>"


class WorkflowExecutionDescription(WorkflowExecution):
    """Everything that is known of one run, with what it waits for."""

    def __init__(self, raw: DescribeWorkflowResponse, converter: DataConverter) -> None:
        super().__init__(raw.info, converter)
        self.raw_description = raw
        self.execution_timeout: timedelta | None = raw.workflow_execution_timeout
        self.run_timeout: timedelta | None = raw.workflow_run_timeout
        self.task_timeout: timedelta = raw.workflow_task_timeout
        self.pending_activities: Sequence[PendingActivityInfo] = raw.pending_activities
        self.pending_children: Sequence[PendingChildInfo] = raw.pending_children
        self.pending_timers: Sequence[PendingTimerInfo] = raw.pending_timers
        self.pending_workflow_task: PendingWorkflowTaskInfo | None = raw.pending_workflow_task
        """Its ``attempt`` is above 1 when workflow code fails; ``last_failure`` says why."""
        self.cancel_requested = raw.cancel_requested
        self.attempt = raw.attempt
        """Of the whole workflow, by its retry policy."""
        self.cron_schedule = raw.cron_schedule
        self.first_workflow_task_time: datetime | None = raw.first_workflow_task_time
        """While the run's code waits for its time: a start delay, a backoff, the next turn of its cron."""
        self.continued_run_id = raw.continued_execution_run_id or None
        """The run before this one in its chain."""
        self.new_run_id = raw.new_execution_run_id or None
        """The run that goes on behind this one."""
        self.unpolled_task_queues: Sequence[str] = raw.unpolled_task_queues
        """Task queues on which the run waits and that no worker polls."""
        self.callbacks: Sequence[CallbackInfo] = raw.callbacks
        """Who is told of the end, and how far that is."""

    async def static_summary(self) -> str | None:
        """What its starter said of it in a few words."""
        metadata = self.raw_description.user_metadata
        return None if metadata is None else text_of(self._converter, metadata.summary)

    async def static_details(self) -> str | None:
        """What its starter said of it at length."""
        metadata = self.raw_description.user_metadata
        return None if metadata is None else text_of(self._converter, metadata.details)
