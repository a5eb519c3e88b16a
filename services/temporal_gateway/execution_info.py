"""A run in a list or a description."""

from stepwell.api import requests as r
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflow.v1 import message_pb2 as pb

from .names import number
from .payloads import to_memo, to_search_attributes
from .records import optional_execution, to_execution
from .times import duration, timestamp


def to_info(info: r.WorkflowExecutionInfo) -> pb.WorkflowExecutionInfo:
    value = pb.WorkflowExecutionInfo(
        execution=to_execution(info.execution),
        type=common_pb2.WorkflowType(name=info.workflow_type),
        start_time=timestamp(info.start_time),
        execution_time=timestamp(info.start_time),
        status=number(info.status, "WORKFLOW_EXECUTION_STATUS_", WorkflowExecutionStatus),
        history_length=info.history_length,
        history_size_bytes=info.history_size_bytes,
        parent_namespace_id=info.parent_namespace,
        parent_execution=optional_execution(info.parent_execution),
        root_execution=to_execution(info.root_execution or info.execution),
        memo=to_memo(info.memo) or common_pb2.Memo(),
        search_attributes=to_search_attributes(info.search_attributes) or common_pb2.SearchAttributes(),
        task_queue=info.task_queue,
        first_run_id=info.first_run_id,
    )
    if info.close_time is not None:
        value.close_time.CopyFrom(timestamp(info.close_time))
        value.execution_duration.CopyFrom(duration(info.close_time - info.start_time))
    return value
