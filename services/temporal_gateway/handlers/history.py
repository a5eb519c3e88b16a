"""Histories: by page, by long poll, the close event alone, newest first."""

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.limits import MAX_HISTORY_PAGE_EVENTS
from temporalio.api.enums.v1 import HistoryEventFilterType
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from ..events import to_history
from ..gateway import Call, Gateway, Handlers
from ..records import execution_of
from ..task_history import further_page, is_of_task

_CLOSE_EVENT = HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT


async def get_workflow_execution_history(
    gateway: Gateway, request: pb.GetWorkflowExecutionHistoryRequest, call: Call
) -> pb.GetWorkflowExecutionHistoryResponse:
    execution = execution_of(request.execution)
    if is_of_task(request.next_page_token):
        page = await further_page(gateway, request.namespace, execution, request.next_page_token)
        return pb.GetWorkflowExecutionHistoryResponse(
            history=to_history(page.events, request.namespace), next_page_token=page.next_page_token
        )
    asked = r.GetHistoryRequest(
        namespace=request.namespace,
        execution=execution,
        maximum_page_size=_page_size(request.maximum_page_size),
        next_page_token=request.next_page_token,
        wait_new_event=request.wait_new_event,
        close_event_only=request.history_event_filter_type == _CLOSE_EVENT,
        timeout=call.wait(),
        skip_archival=request.skip_archival,
    )
    answer = await gateway.call(o.GET_HISTORY, asked)
    return pb.GetWorkflowExecutionHistoryResponse(
        history=to_history(answer.events, request.namespace), next_page_token=answer.next_page_token
    )


async def get_workflow_execution_history_reverse(
    gateway: Gateway, request: pb.GetWorkflowExecutionHistoryReverseRequest, call: Call
) -> pb.GetWorkflowExecutionHistoryReverseResponse:
    asked = r.GetHistoryRequest(
        namespace=request.namespace,
        execution=execution_of(request.execution),
        maximum_page_size=_page_size(request.maximum_page_size),
        next_page_token=request.next_page_token,
        reverse=True,
    )
    answer = await gateway.call(o.GET_HISTORY, asked)
    return pb.GetWorkflowExecutionHistoryReverseResponse(
        history=to_history(answer.events, request.namespace), next_page_token=answer.next_page_token
    )


def _page_size(asked: int) -> int:
    """More than a page may have is no error to them: the rest comes with the next one."""
    return min(asked, MAX_HISTORY_PAGE_EVENTS)


HANDLERS: Handlers = {
    "GetWorkflowExecutionHistory": get_workflow_execution_history,
    "GetWorkflowExecutionHistoryReverse": get_workflow_execution_history_reverse,
}
