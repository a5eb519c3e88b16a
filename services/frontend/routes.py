"""ROUTES: the API in one table, one row per operation. Every transport and the OpenAPI document are made from it.

Adding an operation is one request and response record, one engine method, one handler and one row here.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from stepwell.api import operations as o
from stepwell.api.operations import Operation

from ..history.engine import Engine
from .handlers import (
    activities,
    batches,
    exports,
    namespaces,
    schedules,
    standalone,
    system,
    visibility,
    worker_tasks,
    workflows,
)

Handler = Callable[[Engine, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Route:
    """One operation and what carries it out. The handler raises ``ApiError`` for refusals."""

    operation: Operation[Any, Any]
    handler: Handler


ROUTES: tuple[Route, ...] = (
    Route(o.START_WORKFLOW, workflows.start_workflow),
    Route(o.SIGNAL_WITH_START_WORKFLOW, workflows.signal_with_start_workflow),
    Route(o.UPDATE_WITH_START_WORKFLOW, workflows.update_with_start_workflow),
    Route(o.SIGNAL_WORKFLOW, workflows.signal_workflow),
    Route(o.QUERY_WORKFLOW, workflows.query_workflow),
    Route(o.UPDATE_WORKFLOW, workflows.update_workflow),
    Route(o.POLL_WORKFLOW_UPDATE, workflows.poll_workflow_update),
    Route(o.CANCEL_WORKFLOW, workflows.cancel_workflow),
    Route(o.TERMINATE_WORKFLOW, workflows.terminate_workflow),
    Route(o.DELETE_WORKFLOW, workflows.delete_workflow),
    Route(o.PAUSE_WORKFLOW, workflows.pause_workflow),
    Route(o.UNPAUSE_WORKFLOW, workflows.unpause_workflow),
    Route(o.RESET_WORKER_AFFINITY, workflows.reset_worker_affinity),
    Route(o.UPDATE_WORKFLOW_OPTIONS, workflows.update_workflow_options),
    Route(o.RESET_WORKFLOW, workflows.reset_workflow),
    Route(o.IMPORT_WORKFLOW, workflows.import_workflow),
    Route(o.DESCRIBE_WORKFLOW, workflows.describe_workflow),
    Route(o.GET_HISTORY, workflows.get_history),
    Route(o.LIST_WORKFLOWS, visibility.list_workflows),
    Route(o.SCAN_WORKFLOWS, visibility.scan_workflows),
    Route(o.LIST_ARCHIVED_WORKFLOWS, visibility.list_archived_workflows),
    Route(o.COUNT_WORKFLOWS, visibility.count_workflows),
    Route(o.START_BATCH_OPERATION, batches.start_batch_operation),
    Route(o.DESCRIBE_BATCH_OPERATION, batches.describe_batch_operation),
    Route(o.STOP_BATCH_OPERATION, batches.stop_batch_operation),
    Route(o.LIST_BATCH_OPERATIONS, batches.list_batch_operations),
    Route(o.START_EXPORT, exports.start_export),
    Route(o.DESCRIBE_EXPORT, exports.describe_export),
    Route(o.STOP_EXPORT, exports.stop_export),
    Route(o.LIST_EXPORTS, exports.list_exports),
    Route(o.POLL_WORKFLOW_TASK, worker_tasks.poll_workflow_task),
    Route(o.START_WORKFLOW_TASK, worker_tasks.start_workflow_task),
    Route(o.RESPOND_WORKFLOW_TASK_COMPLETED, worker_tasks.respond_workflow_task_completed),
    Route(o.RESPOND_WORKFLOW_TASKS_COMPLETED, worker_tasks.respond_workflow_tasks_completed),
    Route(o.RESPOND_WORKFLOW_TASK_FAILED, worker_tasks.respond_workflow_task_failed),
    Route(o.RESPOND_QUERY_TASK_COMPLETED, worker_tasks.respond_query_task_completed),
    Route(o.POLL_ACTIVITY_TASK, worker_tasks.poll_activity_task),
    Route(o.START_ACTIVITY_TASK, worker_tasks.start_activity_task),
    Route(o.RESPOND_ACTIVITY_TASKS, worker_tasks.respond_activity_tasks),
    Route(o.RECORD_ACTIVITY_HEARTBEAT, worker_tasks.record_activity_heartbeat),
    Route(o.RESPOND_ACTIVITY_BY_ID, activities.respond_activity_by_id),
    Route(o.RECORD_ACTIVITY_HEARTBEAT_BY_ID, activities.record_activity_heartbeat_by_id),
    Route(o.PAUSE_ACTIVITY, activities.pause_activity),
    Route(o.UNPAUSE_ACTIVITY, activities.unpause_activity),
    Route(o.RESET_ACTIVITY, activities.reset_activity),
    Route(o.UPDATE_ACTIVITY_OPTIONS, activities.update_activity_options),
    Route(o.START_ACTIVITY, standalone.start_activity),
    Route(o.POLL_ACTIVITY, standalone.poll_activity),
    Route(o.DESCRIBE_ACTIVITY, standalone.describe_activity),
    Route(o.CANCEL_ACTIVITY, standalone.cancel_activity),
    Route(o.TERMINATE_ACTIVITY, standalone.terminate_activity),
    Route(o.DELETE_ACTIVITY, standalone.delete_activity),
    Route(o.LIST_ACTIVITIES, standalone.list_activities),
    Route(o.COUNT_ACTIVITIES, standalone.count_activities),
    Route(o.COMPLETE_STANDALONE_ACTIVITY, standalone.complete_standalone_activity),
    Route(o.RECORD_STANDALONE_ACTIVITY_HEARTBEAT, standalone.record_standalone_activity_heartbeat),
    Route(o.PAUSE_STANDALONE_ACTIVITY, standalone.pause_standalone_activity),
    Route(o.UNPAUSE_STANDALONE_ACTIVITY, standalone.unpause_standalone_activity),
    Route(o.RESET_STANDALONE_ACTIVITY, standalone.reset_standalone_activity),
    Route(o.UPDATE_STANDALONE_ACTIVITY_OPTIONS, standalone.update_standalone_activity_options),
    Route(o.SHUTDOWN_WORKER, worker_tasks.shutdown_worker),
    Route(o.DESCRIBE_TASK_QUEUE, system.describe_task_queue),
    Route(o.LIST_WORKERS, system.list_workers),
    Route(o.GET_TASK_SOURCES, system.get_task_sources),
    Route(o.REGISTER_NAMESPACE, namespaces.register_namespace),
    Route(o.DESCRIBE_NAMESPACE, namespaces.describe_namespace),
    Route(o.UPDATE_NAMESPACE, namespaces.update_namespace),
    Route(o.DEPRECATE_NAMESPACE, namespaces.deprecate_namespace),
    Route(o.DELETE_NAMESPACE, namespaces.delete_namespace),
    Route(o.LIST_NAMESPACES, namespaces.list_namespaces),
    Route(o.CREATE_SCHEDULE, schedules.create_schedule),
    Route(o.DESCRIBE_SCHEDULE, schedules.describe_schedule),
    Route(o.UPDATE_SCHEDULE, schedules.update_schedule),
    Route(o.PATCH_SCHEDULE, schedules.patch_schedule),
    Route(o.DELETE_SCHEDULE, schedules.delete_schedule),
    Route(o.LIST_SCHEDULE_MATCHING_TIMES, schedules.list_schedule_matching_times),
    Route(o.LIST_SCHEDULES, schedules.list_schedules),
    Route(o.COUNT_SCHEDULES, schedules.count_schedules),
    Route(o.GET_SYSTEM_INFO, system.get_system_info),
)

HANDLERS: dict[str, Handler] = {route.operation.name: route.handler for route in ROUTES}
"""By operation name, for transports that hand records over in this process."""
