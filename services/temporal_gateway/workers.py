"""Who polls and completes: a Temporal worker as our ``WorkerInfo``, and its sticky queue as our affinity.

There is no queue for each worker here. A worker is known by its instance key, or, where its SDK sends none, by the name
of its sticky queue; runs that it has cached are offered to it first, and whoever else takes one is shown all of it.
"""

from typing import NamedTuple

from stepwell.api.errors import InvalidArgument
from stepwell.api.requests import WorkerInfo
from temporalio.api.enums.v1 import TaskQueueKind
from temporalio.api.taskqueue.v1 import message_pb2 as taskqueue_pb2

_STICKY = TaskQueueKind.TASK_QUEUE_KIND_STICKY
"""Each look at a member of one of their enums is two calls."""


class PolledQueue(NamedTuple):
    name: str
    worker_key: str


def polled(queue: taskqueue_pb2.TaskQueue, instance_key: str) -> PolledQueue:
    """Raises InvalidArgument for a sticky queue that does not say whose it is."""
    if queue.kind != _STICKY:
        return PolledQueue(queue.name, instance_key)
    if not queue.normal_name:
        raise InvalidArgument(
            f"sticky task queue {queue.name!r} has no normal_name; send the name of the queue that its worker serves",
            field="task_queue.normal_name",
        )
    return PolledQueue(queue.normal_name, instance_key or queue.name)


def completing_key(sticky: taskqueue_pb2.StickyExecutionAttributes, instance_key: str) -> str:
    """Empty for a worker that keeps no run in memory."""
    name = sticky.worker_task_queue.name
    return (instance_key or name) if name else ""


def worker(identity: str, worker_key: str = "", build_id: str = "") -> WorkerInfo:
    return WorkerInfo(identity=identity, build_id=build_id, worker_key=worker_key, shown_completed=True)
