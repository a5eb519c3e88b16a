"""Tasks: work that a transition owes to the outside. Everything here can be derived again from the newest state."""

from datetime import datetime

import msgspec
from stepwell.api.common import Memo
from stepwell.api.enums import WorkflowExecutionStatus


class DispatchWorkflowTask(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag=True, gc=False):
    task_queue: str
    attempt: int = 1
    not_before: datetime | None = None


class DispatchActivityTask(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag=True, gc=False):
    scheduled_event_id: int
    task_queue: str
    attempt: int = 1
    not_before: datetime | None = None


class CancelActivity(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag=True, gc=False):
    """Tell the activity's item (there may be none yet) that the workflow asked for cancellation."""

    scheduled_event_id: int


class RecordVisibility(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag=True, gc=False):
    """Upsert the visibility record if ``seq`` is newer."""

    run_id: str
    workflow_type: str
    task_queue: str
    status: WorkflowExecutionStatus
    start_time: datetime
    close_time: datetime | None = None
    history_length: int = 0
    memo: Memo = {}
    search_attributes: Memo = {}


class SignalExternal(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag=True, gc=False):
    """There is a signal of this run for another workflow; what it says is in its Initiated event."""

    run_id: str
    initiated_event_id: int
    namespace: str = ""
    """Empty: the run's own."""
    workflow_id: str


Task = DispatchWorkflowTask | DispatchActivityTask | CancelActivity | RecordVisibility | SignalExternal
