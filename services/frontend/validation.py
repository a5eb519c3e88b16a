"""What each request must be like before an engine sees it: one function per operation, in the order of ``OPERATIONS``.

Commands of a workflow task are not checked here: a bad one fails the workflow task with a named cause (ER-08), which is
the engine's to record.
"""

from collections.abc import Sequence
from functools import lru_cache

from stepwell.api import requests as r
from stepwell.api.common import UserMetadata, WorkflowExecution
from stepwell.api.enums import ResetType, WorkflowIDConflictPolicy
from stepwell.api.errors import InvalidArgument, PayloadTooLarge
from stepwell.api.limits import (
    MAX_COMMANDS_PER_TASK,
    MAX_COMPLETIONS_PER_REQUEST,
    MAX_DETAILS_BYTES,
    MAX_HISTORY_PAGE_EVENTS,
    MAX_LIST_PAGE,
    MAX_MEMO_BYTES,
    MAX_NONCE_BYTES,
    MAX_OUTCOMES_PER_REQUEST,
    MAX_SUMMARY_BYTES,
    MAX_TASKS_PER_POLL,
    MAX_TRANSITION_BYTES,
    MAX_WORKFLOW_TASK_TIMEOUT,
)

from . import fields
from .validation_callbacks import completion_callbacks
from .validation_starts import deduplication, no_deduplication

MAX_BUILD_ID_BYTES = 255
"""docs/semantics.md, DA-11."""

_NEXT_PAGE = "ask for less and read on with next_page_token"


def start_workflow(request: r.StartWorkflowRequest) -> None:
    transition("input, memo, search_attributes and headers", _start(request))
    deduplication(request)


def signal_with_start_workflow(request: r.SignalWithStartWorkflowRequest) -> None:
    size = _start(request)
    no_deduplication(request)
    if request.workflow_id_conflict_policy is WorkflowIDConflictPolicy.FAIL:
        raise InvalidArgument(
            "workflow_id_conflict_policy FAIL cannot go with a signal, which is for the open run if there is one; use "
            "USE_EXISTING or TERMINATE_EXISTING, or start the workflow without the signal",
            field="workflow_id_conflict_policy",
        )
    fields.identifier("signal_name", request.signal_name)
    size += fields.payloads("signal_input", request.signal_input)
    size += fields.payload_map("signal_headers", request.signal_headers)
    transition("input, memo, search_attributes, headers and the signal", size)


def update_with_start_workflow(request: r.UpdateWithStartWorkflowRequest) -> None:
    size = _start(request)
    no_deduplication(request)
    fields.identifier("update_id", request.update_id)
    fields.identifier("update_name", request.update_name)
    size += fields.payloads("update_input", request.update_input)
    size += fields.payload_map("update_headers", request.update_headers)
    transition("input, memo, search_attributes, headers and the update", size)
    fields.wait("timeout", request.timeout)


def _start(request: r.StartWorkflowRequest) -> int:
    """Bytes of its payloads."""
    fields.namespace(request.namespace)
    fields.path_identifier("workflow_id", request.workflow_id)
    fields.name("workflow_type", request.workflow_type)
    fields.name("task_queue", request.task_queue)
    fields.label("identity", request.identity)
    fields.optional_identifier("request_id", request.request_id)
    fields.duration("workflow_execution_timeout", request.workflow_execution_timeout)
    fields.duration("workflow_run_timeout", request.workflow_run_timeout)
    fields.duration("workflow_task_timeout", request.workflow_task_timeout, MAX_WORKFLOW_TASK_TIMEOUT)
    fields.duration("workflow_start_delay", request.workflow_start_delay)
    fields.text("cron_schedule", request.cron_schedule)
    if request.completion_callbacks:
        completion_callbacks(request.completion_callbacks)
    if request.eager_worker is not None:
        _worker(request.eager_worker)
    size = fields.payloads("input", request.input)
    size += fields.payload_map("memo", request.memo, MAX_MEMO_BYTES)
    size += fields.payload_map("search_attributes", request.search_attributes, MAX_MEMO_BYTES)
    size += fields.payload_map("headers", request.headers)
    return size + user_metadata(request.user_metadata)


_ENCODED = 4
"""A text is longer as a payload, and longer yet when a codec has encrypted it; the SDK counts the text itself."""


def user_metadata(metadata: UserMetadata | None) -> int:
    """Texts for people (PM-27)."""
    size = 0
    if metadata is not None:
        if metadata.summary is not None:
            size += fields.payloads("user_metadata.summary", (metadata.summary,), _ENCODED * MAX_SUMMARY_BYTES)
        if metadata.details is not None:
            size += fields.payloads("user_metadata.details", (metadata.details,), _ENCODED * MAX_DETAILS_BYTES)
    return size


def signal_workflow(request: r.SignalWorkflowRequest) -> None:
    execution(request.namespace, request.execution)
    fields.name("signal_name", request.signal_name)
    fields.label("identity", request.identity)
    fields.optional_identifier("request_id", request.request_id)
    fields.optional_identifier("idempotency_key", request.idempotency_key)
    size = fields.payloads("input", request.input) + fields.payload_map("headers", request.headers)
    transition("input and headers", size)


def query_workflow(request: r.QueryWorkflowRequest) -> None:
    execution(request.namespace, request.execution)
    fields.identifier("query_type", request.query_type)
    fields.payloads("query_args", request.query_args)
    fields.payload_map("headers", request.headers)
    fields.wait("timeout", request.timeout)


def update_workflow(request: r.UpdateWorkflowRequest) -> None:
    execution(request.namespace, request.execution)
    fields.optional_identifier("first_execution_run_id", request.first_execution_run_id)
    fields.identifier("update_id", request.update_id)
    fields.identifier("update_name", request.update_name)
    fields.text("identity", request.identity)
    size = fields.payloads("input", request.input) + fields.payload_map("headers", request.headers)
    transition("input and headers", size)
    fields.wait("timeout", request.timeout)


def poll_workflow_update(request: r.PollWorkflowUpdateRequest) -> None:
    execution(request.namespace, request.execution)
    fields.identifier("update_id", request.update_id)
    fields.wait("timeout", request.timeout)


def cancel_workflow(request: r.CancelWorkflowRequest) -> None:
    execution(request.namespace, request.execution)
    fields.text("reason", request.reason)
    fields.text("identity", request.identity)
    fields.optional_identifier("request_id", request.request_id)
    fields.optional_identifier("first_execution_run_id", request.first_execution_run_id)


def terminate_workflow(request: r.TerminateWorkflowRequest) -> None:
    execution(request.namespace, request.execution)
    fields.text("reason", request.reason)
    fields.text("identity", request.identity)
    fields.optional_identifier("first_execution_run_id", request.first_execution_run_id)
    fields.payloads("details", request.details)


def delete_workflow(request: r.DeleteWorkflowRequest) -> None:
    execution(request.namespace, request.execution)
    fields.text("identity", request.identity)
    fields.optional_identifier("first_execution_run_id", request.first_execution_run_id)


def pause_workflow(request: r.PauseWorkflowRequest | r.UnpauseWorkflowRequest) -> None:
    execution(request.namespace, request.execution)
    fields.text("reason", request.reason)
    fields.text("identity", request.identity)
    fields.optional_identifier("request_id", request.request_id)


def update_workflow_options(request: r.UpdateWorkflowOptionsRequest) -> None:
    execution(request.namespace, request.execution)
    fields.text("identity", request.identity)
    fields.text("update_mask", request.update_mask)


def reset_workflow(request: r.ResetWorkflowRequest) -> None:
    execution(request.namespace, request.execution)
    fields.text("reason", request.reason)
    fields.text("identity", request.identity)
    fields.optional_identifier("request_id", request.request_id)
    fields.text("build_id", request.build_id, MAX_BUILD_ID_BYTES)
    event_id = request.workflow_task_finish_event_id
    if (event_id != 0) == (request.reset_type is not None):
        raise InvalidArgument(
            "a reset goes back to either a workflow_task_finish_event_id or a reset_type; set exactly one of them",
            field="workflow_task_finish_event_id",
        )
    if event_id < 0:
        raise InvalidArgument(
            f"workflow_task_finish_event_id is {event_id}; events are numbered from 1 on",
            field="workflow_task_finish_event_id",
        )
    if (request.reset_type is ResetType.BUILD_ID) != bool(request.build_id):
        raise InvalidArgument("build_id goes with reset_type BUILD_ID; set both or neither", field="build_id")
    size = 0
    for index, operation in enumerate(request.post_reset_operations):
        signal = operation.signal_workflow
        if signal is not None:
            name = f"post_reset_operations[{index}].signal_workflow"
            fields.identifier(f"{name}.signal_name", signal.signal_name)
            size += fields.payloads(f"{name}.input", signal.input)
            size += fields.payload_map(f"{name}.headers", signal.headers)
    transition("post_reset_operations", size)


def describe_workflow(request: r.DescribeWorkflowRequest) -> None:
    execution(request.namespace, request.execution)


def get_history(request: r.GetHistoryRequest) -> None:
    execution(request.namespace, request.execution)
    fields.count("maximum_page_size", request.maximum_page_size, MAX_HISTORY_PAGE_EVENTS, way_out=_NEXT_PAGE)
    fields.wait("timeout", request.timeout)
    if request.reverse and (request.wait_new_event or request.close_event_only):
        raise InvalidArgument(
            "reverse reads what is there, newest first, and waits for nothing; leave out wait_new_event and "
            "close_event_only",
            field="reverse",
        )


def list_workflows(request: r.ListWorkflowsRequest) -> None:
    fields.namespace(request.namespace)
    fields.optional_identifier("workflow_type", request.workflow_type)
    fields.count("page_size", request.page_size, MAX_LIST_PAGE, way_out=_NEXT_PAGE)


def scan_workflows(request: r.ScanWorkflowsRequest) -> None:
    fields.namespace(request.namespace)
    fields.count("page_size", request.page_size, MAX_LIST_PAGE, way_out=_NEXT_PAGE)


def list_archived_workflows(request: r.ListArchivedWorkflowsRequest) -> None:
    fields.namespace(request.namespace)
    fields.count("page_size", request.page_size, MAX_LIST_PAGE, way_out=_NEXT_PAGE)


def count_workflows(request: r.CountWorkflowsRequest) -> None:
    """The query is checked by who reads it."""
    fields.namespace(request.namespace)


def poll_workflow_task(request: r.PollWorkflowTaskRequest) -> None:
    _queue(request.namespace, request.task_queue)
    _worker(request.worker)
    _maximum_tasks(request.maximum_tasks)
    fields.wait("timeout", request.timeout)


def start_task(request: r.StartWorkflowTaskRequest | r.StartActivityTaskRequest) -> None:
    """The hint is checked by who reads it."""
    _queue(request.namespace, request.task_queue)
    _worker(request.worker)


def respond_workflow_task_completed(request: r.RespondWorkflowTaskCompletedRequest) -> None:
    fields.namespace(request.namespace)
    fields.task_token("task_token", request.task_token)
    fields.nonce(request.nonce)
    _worker(request.worker)
    if request.activity_outcomes:
        _outcomes("activity_outcomes", request.activity_outcomes)
    if request.sdk_metadata is not None:
        fields.text("sdk_metadata.sdk_name", request.sdk_metadata.sdk_name)
        fields.text("sdk_metadata.sdk_version", request.sdk_metadata.sdk_version)
    eager = request.eager_activities
    if eager is not None:
        fields.name("eager_activities.task_queue", eager.task_queue)
        fields.count(
            "eager_activities.slots", eager.slots, MAX_COMMANDS_PER_TASK, way_out="reserve fewer slots at a time"
        )


def respond_workflow_tasks_completed(request: r.RespondWorkflowTasksCompletedRequest) -> None:
    """What is wrong with one completion is that one's own answer; here only that they may travel together."""
    fields.namespace(request.namespace)
    fields.count(
        "number of completions",
        len(request.completions),
        MAX_COMPLETIONS_PER_REQUEST,
        minimum=1,
        way_out="send them in several requests",
    )
    for completion in request.completions:
        if completion.namespace != request.namespace:
            raise InvalidArgument(
                f"a completion is of namespace {completion.namespace!r} in a request of {request.namespace!r}; "
                "send those of one namespace together",
                field="completions",
            )


def respond_workflow_task_failed(request: r.RespondWorkflowTaskFailedRequest) -> None:
    fields.namespace(request.namespace)
    fields.task_token("task_token", request.task_token)
    fields.optional_identifier("nonce", request.nonce, MAX_NONCE_BYTES)
    _worker(request.worker)
    _outcomes("activity_outcomes", request.activity_outcomes)


def respond_query_task_completed(request: r.RespondQueryTaskCompletedRequest) -> None:
    fields.namespace(request.namespace)
    fields.task_token("task_token", request.task_token)
    if request.failure is not None and request.result:
        raise InvalidArgument("failure and result are both set; send only one of them", field="failure")


def poll_activity_task(request: r.PollActivityTaskRequest) -> None:
    _queue(request.namespace, request.task_queue)
    _worker(request.worker)
    _maximum_tasks(request.maximum_tasks)
    fields.wait("timeout", request.timeout)
    fields.rate("max_tasks_per_second", request.max_tasks_per_second)


def respond_activity_tasks(request: r.RespondActivityTasksRequest) -> None:
    fields.namespace(request.namespace)
    _worker(request.worker)
    if not request.outcomes:
        raise InvalidArgument("outcomes is empty; send at least one outcome", field="outcomes")
    _outcomes("outcomes", request.outcomes)


def record_activity_heartbeat(request: r.RecordActivityHeartbeatRequest) -> None:
    fields.namespace(request.namespace)
    fields.task_token("task_token", request.task_token)
    fields.payloads("details", request.details)
    fields.text("identity", request.identity)


def shutdown_worker(request: r.ShutdownWorkerRequest) -> None:
    _queue(request.namespace, request.task_queue)
    _worker(request.worker)


def describe_task_queue(request: r.DescribeTaskQueueRequest) -> None:
    _queue(request.namespace, request.task_queue)


def list_workers(request: r.ListWorkersRequest) -> None:
    fields.namespace(request.namespace)
    fields.optional_identifier("task_queue", request.task_queue)
    fields.count("page_size", request.page_size, MAX_LIST_PAGE, way_out=_NEXT_PAGE)


def get_task_sources(request: r.GetTaskSourcesRequest) -> None:
    _queue(request.namespace, request.task_queue)
    if request.worker is not None:
        _worker(request.worker)


def get_system_info(request: r.GetSystemInfoRequest) -> None:
    """Has no fields."""


def execution(namespace: str, execution: WorkflowExecution) -> None:
    fields.namespace(namespace)
    fields.path_identifier("execution.workflow_id", execution.workflow_id)
    fields.optional_identifier("execution.run_id", execution.run_id)


def _queue(namespace: str, task_queue: str) -> None:
    fields.namespace(namespace)
    fields.name("task_queue", task_queue)


def _maximum_tasks(maximum_tasks: int) -> None:
    fields.count("maximum_tasks", maximum_tasks, MAX_TASKS_PER_POLL, minimum=1, way_out="poll again for more tasks")


@lru_cache(maxsize=1_024)
def _worker(worker: r.WorkerInfo) -> None:
    fields.text("worker.identity", worker.identity)
    fields.text("worker.build_id", worker.build_id, MAX_BUILD_ID_BYTES)
    fields.text("worker.worker_key", worker.worker_key)
    process = worker.process
    if process is not None:
        fields.text("worker.process.machine", process.machine)
        fields.text("worker.process.started", process.started)


def _outcomes(field: str, outcomes: Sequence[r.ActivityOutcome]) -> None:
    """Sizes are not checked here: an outcome that is too large must end its activity (``outcomes.py``)."""
    if len(outcomes) > MAX_OUTCOMES_PER_REQUEST:
        way_out = "send them in several requests"
        fields.count(f"number of {field}", len(outcomes), MAX_OUTCOMES_PER_REQUEST, way_out=way_out)
    for outcome in outcomes:
        if not outcome.task_token:
            fields.task_token(f"{field}.task_token", outcome.task_token)


def transition(what: str, size: int) -> None:
    if size > MAX_TRANSITION_BYTES:
        raise PayloadTooLarge(
            f"{what} together have {size} bytes, above the limit of {MAX_TRANSITION_BYTES} for one request; "
            "store the data elsewhere (a file or object store) and pass a reference",
            field=what,
        )
