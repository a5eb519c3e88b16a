"""What an action is as a start of a workflow, and what the end of a run is for its schedule. Pure."""

from datetime import datetime

import msgspec
from stepwell.api import codec
from stepwell.api.common import Memo
from stepwell.api.enums import ScheduleOverlapPolicy, TimeoutType, WorkflowExecutionStatus
from stepwell.api.events import (
    WorkflowExecutionCanceled,
    WorkflowExecutionCompleted,
    WorkflowExecutionFailed,
    WorkflowExecutionTerminated,
    WorkflowExecutionTimedOut,
)
from stepwell.api.payloads import ENCODING, ENCODING_JSON, Payload, Payloads
from stepwell.api.requests import StartWorkflowRequest
from stepwell.api.schedules import NewWorkflowExecutionInfo

from ..history import retry
from ..history.answers import ChildClosed
from ..history.outside_waiters import outside_waiter
from ..history.requests import Start
from ..history.state import ParentLink
from .requests import RunEnd
from .runs import action_of, request_id_of
from .state import KIND, Origin, Run, ScheduleRecord, overlap_of

SCHEDULED_BY_ID = "StepwellScheduledById"
SCHEDULED_START_TIME = "StepwellScheduledStartTime"
SCHEDULED_BY_BACKFILL = "StepwellScheduledByBackfill"
"""Search attributes of the runs that schedules start (LC-38); the last one only of those that a backfill started."""


def start_of(record: ScheduleRecord, run: Run) -> Start:
    alone = overlap_of(record, run.waiting) is not ScheduleOverlapPolicy.ALLOW_ALL
    told = run.counts or record.schedule.policies.pause_on_failure
    action = action_of(record)
    request = start_request(record.namespace, action, run.workflow_id)
    return Start(
        run_id=run.run_id,
        start=msgspec.structs.replace(
            request,
            identity=f"schedule {record.schedule_id}",
            request_id=request_id_of(record, run.waiting),
            search_attributes={**action.search_attributes, **_attributes(record, run)},
        ),
        waiter=waiter_of(record) if told else None,
        last_completion_result=record.last_result if alone else (),
        continued_failure=record.last_failure if alone else None,
    )


def start_request(namespace: str, action: NewWorkflowExecutionInfo, workflow_id: str) -> StartWorkflowRequest:
    return StartWorkflowRequest(
        namespace=namespace,
        workflow_id=workflow_id,
        workflow_type=action.workflow_type,
        task_queue=action.task_queue,
        input=action.input,
        workflow_execution_timeout=action.workflow_execution_timeout,
        workflow_run_timeout=action.workflow_run_timeout,
        workflow_task_timeout=action.workflow_task_timeout,
        workflow_id_reuse_policy=action.workflow_id_reuse_policy,
        memo=action.memo,
        search_attributes=action.search_attributes,
        headers=action.headers,
        retry_policy=action.retry_policy,
        workflow_start_delay=action.workflow_start_delay,
        user_metadata=action.user_metadata,
        priority=action.priority,
    )


def waiter_of(record: ScheduleRecord) -> ParentLink:
    return outside_waiter(record.namespace, KIND, record.schedule_id, record.incarnation)


def _attributes(record: ScheduleRecord, run: Run) -> Memo:
    attributes = {
        SCHEDULED_BY_ID: _searchable("Keyword", record.schedule_id),
        SCHEDULED_START_TIME: _searchable("Datetime", run.waiting.nominal),
    }
    if run.waiting.origin is Origin.BACKFILL:
        attributes[SCHEDULED_BY_BACKFILL] = _searchable("Bool", True)
    return attributes


def _searchable(kind: str, value: str | bool | datetime) -> Payload:
    return Payload(metadata={ENCODING: ENCODING_JSON, "type": kind}, data=codec.encode_json(value))


def run_end(closed: ChildClosed) -> RunEnd:
    status = WorkflowExecutionStatus
    match closed.close:
        case WorkflowExecutionCompleted(result=result):
            return RunEnd(run_id=closed.first_run_id, status=status.COMPLETED, result=result)
        case WorkflowExecutionFailed(failure=failure):
            return RunEnd(run_id=closed.first_run_id, status=status.FAILED, failure=failure)
        case WorkflowExecutionTimedOut():
            late = retry.timeout_failure(TimeoutType.START_TO_CLOSE, "workflow timeout: the run took too long", None)
            return RunEnd(run_id=closed.first_run_id, status=status.TIMED_OUT, failure=late)
        case WorkflowExecutionCanceled():
            return RunEnd(run_id=closed.first_run_id, status=status.CANCELED)
        case WorkflowExecutionTerminated():
            return RunEnd(run_id=closed.first_run_id, status=status.TERMINATED)
        case event:
            raise TypeError(f"a chain of runs does not end with {type(event).__name__}")


def with_result(start: Start, result: Payloads) -> Start:
    return msgspec.structs.replace(start, last_completion_result=result)
