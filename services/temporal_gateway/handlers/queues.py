"""Task queues: who polls them, and what waits."""

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.enums import TaskQueueKind
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import message_pb2 as taskqueue_pb2
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from ..gateway import Call, Gateway, Handlers
from ..times import timestamp


async def describe_task_queue(
    gateway: Gateway, request: pb.DescribeTaskQueueRequest, call: Call
) -> pb.DescribeTaskQueueResponse:
    of_activities = request.task_queue_type == TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    asked = r.DescribeTaskQueueRequest(
        namespace=request.namespace,
        task_queue=request.task_queue.normal_name or request.task_queue.name,
        kind=TaskQueueKind.ACTIVITY if of_activities else TaskQueueKind.WORKFLOW,
    )
    answer = await gateway.call(o.DESCRIBE_TASK_QUEUE, asked)
    stats = None
    if request.report_stats:
        stats = taskqueue_pb2.TaskQueueStats(approximate_backlog_count=answer.backlog_count)
    return pb.DescribeTaskQueueResponse(
        pollers=[
            taskqueue_pb2.PollerInfo(identity=poller.identity, last_access_time=timestamp(poller.last_access_time))
            for poller in answer.pollers
        ],
        stats=stats,
        task_queue_status=taskqueue_pb2.TaskQueueStatus(backlog_count_hint=answer.backlog_count),
    )


HANDLERS: Handlers = {"DescribeTaskQueue": describe_task_queue}
