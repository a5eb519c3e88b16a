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
    """Tell the activity's item (there may be none yet), and the worker, that the workflow asked for cancellation. The
    run may close in the same commit, so that only this says where the worker is."""

    scheduled_event_id: int
    activity_id: str = ""
    task_queue: str = ""
    leased_to: str = ""
    """Worker key of the lease."""
    run_id: str = ""
    """Empty: the commit's run. A commit may close this run and open another."""


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


class CancelExternal(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag=True, gc=False):
    """This run asks another workflow to cancel; see its Initiated event."""

    run_id: str
    initiated_event_id: int
    namespace: str = ""
    workflow_id: str


class StartChild(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag=True, gc=False):
    """This run asks for a child, or, of one that has started, how it is."""

    run_id: str
    initiated_event_id: int
    namespace: str = ""
    workflow_id: str


class ApplyParentClose(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag=True, gc=False):
    """The run is closed; this child of it is to be dealt with."""

    run_id: str
    initiated_event_id: int
    namespace: str = ""
    workflow_id: str


class NotifyParent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag=True, gc=False):
    """The run is closed; who waits for it is to be told. ``initiated_event_id`` is that of the event that closed it."""

    run_id: str
    initiated_event_id: int
    namespace: str = ""
    workflow_id: str


CrossRunTask = SignalExternal | CancelExternal | StartChild | ApplyParentClose | NotifyParent
"""Something for another execution. What, is in the state of the run that it names, which may be closed."""


class DeleteRun(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag=True, gc=False):
    """What there is of this closed run is to go."""

    run_id: str


class ArchiveRuns(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag=True, gc=False):
    """Closed runs of the id are to be archived now: those that the state says are owed."""


Task = (
    DispatchWorkflowTask
    | DispatchActivityTask
    | CancelActivity
    | RecordVisibility
    | CrossRunTask
    | DeleteRun
    | ArchiveRuns
)
