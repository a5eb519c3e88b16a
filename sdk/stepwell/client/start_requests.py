"""The request that a start of a client makes."""

from collections.abc import Callable

from ..api import requests as r
from ..api.enums import WorkflowIDConflictPolicy
from ..api.payloads import Payloads
from ..common import retry_record
from ..converter import DataConverter
from ..search_attributes import first_of
from .arguments import check_start
from .interceptors import StartWorkflowInput
from .request_ids import new_request_id
from .texts import memo_of, texts


def start_request(
    input: StartWorkflowInput,
    namespace: str,
    identity: str,
    converter: DataConverter,
    encode: Callable[[Payloads, str], Payloads],
) -> r.StartWorkflowRequest:
    """Raises what arguments are refused with before anything is sent."""
    check_start(input)
    return r.StartWorkflowRequest(
        namespace=namespace,
        workflow_id=input.id,
        workflow_type=input.workflow,
        task_queue=input.task_queue,
        input=encode(input.signature.encode(converter.payload_converter, input.args), input.signature.what),
        workflow_execution_timeout=input.execution_timeout,
        workflow_run_timeout=input.run_timeout,
        workflow_task_timeout=input.task_timeout,
        identity=identity,
        request_id=new_request_id(),
        workflow_id_reuse_policy=input.id_reuse_policy,
        workflow_id_conflict_policy=input.id_conflict_policy,
        memo=memo_of(converter, input.memo),
        search_attributes=first_of("search_attributes", input.search_attributes),
        retry_policy=retry_record(input.retry_policy, "workflow", input.id),
        cron_schedule=input.cron_schedule,
        workflow_start_delay=input.start_delay,
        priority=input.priority.to_record(),
        headers=dict(input.headers),
        deduplication=None if input.deduplication is None else input.deduplication.to_record(),
        completion_callbacks=tuple([callback.to_record() for callback in input.callbacks]),
        on_conflict_options=_on_conflict(input),
        user_metadata=texts(converter, input.static_summary, input.static_details),
    )


def _on_conflict(input: StartWorkflowInput) -> r.OnConflictOptions | None:
    """An open run that the start meets gets the callbacks too; by the request id a repeat adds them once."""
    meets = WorkflowIDConflictPolicy.USE_EXISTING
    policy = input.id_conflict_policy
    uses = policy == meets or (input.start_signal is not None and policy == WorkflowIDConflictPolicy.FAIL)
    if not input.callbacks or not uses:
        return None
    return r.OnConflictOptions(attach_request_id=True, attach_completion_callbacks=True)
