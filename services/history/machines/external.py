"""Commands that ask something of a workflow that is not the run's child (MS-11). What becomes of it: ``crossing``."""

from stepwell.api import limits
from stepwell.api.commands import RequestCancelExternalWorkflowExecution, SignalExternalWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.events import (
    RequestCancelExternalWorkflowExecutionInitiated,
    SignalExternalWorkflowExecutionInitiated,
)

from ..builder import TransitionBuilder
from ..run_limits import way_out
from ..tasks import CancelExternal, SignalExternal
from .bad_command import BadCommand, check_id, check_namespace, payload_size

_BAD_SIGNAL = WorkflowTaskFailedCause.BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES
_BAD_CANCEL = WorkflowTaskFailedCause.BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES


def signal_size(command: SignalExternalWorkflowExecution) -> int:
    return sum(map(payload_size, command.input)) + sum(map(payload_size, command.headers.values()))


def signal(draft: TransitionBuilder, command: SignalExternalWorkflowExecution, completed_event_id: int) -> None:
    """Raises BadCommand for a bad name, target or size, or too many that are not answered."""
    state = draft.state
    target = command.execution
    check_id(_BAD_SIGNAL, "signal_name", command.signal_name)
    check_id(_BAD_SIGNAL, "execution.workflow_id", target.workflow_id)
    if target.run_id:
        check_id(_BAD_SIGNAL, "execution.run_id", target.run_id)
    namespace = "" if command.namespace == state.namespace else command.namespace
    check_namespace(_BAD_SIGNAL, namespace)
    size = signal_size(command)
    if size > limits.MAX_PAYLOAD_BYTES:
        raise BadCommand(
            WorkflowTaskFailedCause.BAD_SIGNAL_INPUT_SIZE,
            f"the signal {command.signal_name!r} to workflow {target.workflow_id!r} has {size} bytes; at most "
            f"{limits.MAX_PAYLOAD_BYTES} are taken. Keep large data outside and pass a reference to it.",
        )
    most = draft.limits.signals
    if len(state.external_signals) >= most:
        raise BadCommand(
            WorkflowTaskFailedCause.PENDING_SIGNALS_LIMIT_EXCEEDED,
            f"the run has {len(state.external_signals)} signals to other workflows that are not delivered yet, the "
            f"most it may have; await some of them first{way_out(most, limits.MAX_PENDING_EXTERNAL_SIGNALS)}.",
        )
    event = draft.record(
        SignalExternalWorkflowExecutionInitiated(
            workflow_task_completed_event_id=completed_event_id,
            namespace=namespace,
            workflow_execution=target,
            signal_name=command.signal_name,
            input=command.input,
            headers=command.headers,
            child_workflow_only=command.child_workflow_only,
        )
    )
    draft.tasks.append(
        SignalExternal(
            run_id=state.run_id,
            initiated_event_id=event.event_id,
            namespace=namespace,
            workflow_id=target.workflow_id,
        )
    )


def cancel(draft: TransitionBuilder, command: RequestCancelExternalWorkflowExecution, completed_event_id: int) -> None:
    """Raises BadCommand for a bad target or reason, or too many that are not answered."""
    state = draft.state
    check_id(_BAD_CANCEL, "workflow_id", command.workflow_id)
    if command.run_id:
        check_id(_BAD_CANCEL, "run_id", command.run_id)
    if command.reason:
        check_id(_BAD_CANCEL, "reason", command.reason)
    namespace = "" if command.namespace == state.namespace else command.namespace
    check_namespace(_BAD_CANCEL, namespace)
    most = draft.limits.cancels
    if len(state.external_cancels) >= most:
        raise BadCommand(
            WorkflowTaskFailedCause.PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED,
            f"the run has {len(state.external_cancels)} requests to cancel other workflows that are not delivered yet, "
            f"the most it may have; await some of them first{way_out(most, limits.MAX_PENDING_EXTERNAL_CANCELS)}.",
        )
    event = draft.record(
        RequestCancelExternalWorkflowExecutionInitiated(
            workflow_task_completed_event_id=completed_event_id,
            namespace=namespace,
            workflow_execution=WorkflowExecution(workflow_id=command.workflow_id, run_id=command.run_id),
            child_workflow_only=command.child_workflow_only,
            reason=command.reason,
        )
    )
    draft.tasks.append(
        CancelExternal(
            run_id=state.run_id,
            initiated_event_id=event.event_id,
            namespace=namespace,
            workflow_id=command.workflow_id,
        )
    )
