"""Why a run has no result, as the exception that a client raises."""

from ..api.enums import TimeoutType
from ..api.events import (
    EventAttributes,
    WorkflowExecutionCanceled,
    WorkflowExecutionFailed,
    WorkflowExecutionTerminated,
    WorkflowExecutionTimedOut,
)
from ..converter.data_converter import DataConverter
from ..exceptions import CancelledError, TerminatedError, TimeoutError


def close_cause(converter: DataConverter, closed: EventAttributes) -> BaseException:
    match closed:
        case WorkflowExecutionFailed():
            return converter.from_failure(closed.failure)
        case WorkflowExecutionCanceled():
            details = converter.payload_converter.from_payloads(closed.details)
            return CancelledError("Workflow cancelled", *details)
        case WorkflowExecutionTerminated():
            details = converter.payload_converter.from_payloads(closed.details)
            return TerminatedError(closed.reason or "Workflow terminated", *details)
        case WorkflowExecutionTimedOut():
            return TimeoutError("Workflow timed out", type=TimeoutType.START_TO_CLOSE)
    return RuntimeError(
        f"the run ended with {type(closed).__name__}, which this release does not know; upgrade stepwell"
    )
