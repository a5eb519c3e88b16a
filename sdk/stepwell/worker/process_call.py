"""Runs one activity in another process: what is sent there, what comes back, and what the activity finds around it."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..activity import ActivityCancellationDetails, Info
from ..activity.context import CompleteAsyncError, Context, current
from ..api.failures import Failure
from ..api.payloads import Payloads
from ..converter import FailureConverter, PayloadConverter


@dataclass(frozen=True)
class ProcessCall:
    """Everything here is pickled; so ``fn`` must be found by its module and name."""

    fn: Callable[..., Any]
    args: Sequence[Any]
    info: Info
    payload_converter_class: type[PayloadConverter]
    failure_converter_class: type[FailureConverter]
    key: str
    heartbeats: Any
    cancelled: Any
    worker_shutdown: Any


@dataclass(frozen=True)
class ProcessResult:
    """``failure`` is set when it raised, ``goes_on`` when somebody else is to end the activity. ``last_heartbeat`` may
    be one that is still in the queue."""

    value: Any = None
    goes_on: bool = False
    failure: Failure | None = None
    last_heartbeat: Payloads | None = None


def run_in_process(call: ProcessCall) -> ProcessResult:
    """Entry point in the other process. Exceptions travel as failure records: many cannot be pickled (WC-24)."""
    converter = _made(call.payload_converter_class)
    last: list[Payloads] = []
    sending = threading.Lock()

    def heartbeat(*details: Any) -> None:
        payloads = converter.to_payloads(details)
        with sending:
            last[:] = [payloads]
            call.heartbeats.put((call.key, payloads))

    def cancellation_details() -> ActivityCancellationDetails | None:
        # Which reason it was stays with the worker; the flag is all that crosses over.
        return ActivityCancellationDetails(cancel_requested=True) if call.cancelled.is_set() else None

    context = Context(
        info=lambda: call.info,
        heartbeat=heartbeat,
        cancelled=call.cancelled,
        worker_shutdown=call.worker_shutdown,
        payload_converter=converter,
        cancellation_details=cancellation_details,
    )
    token = current.set(context)
    try:
        return ProcessResult(value=call.fn(*call.args), last_heartbeat=last[0] if last else None)
    except CompleteAsyncError:
        return ProcessResult(goes_on=True, last_heartbeat=last[0] if last else None)
    except BaseException as error:
        failure = _made(call.failure_converter_class).to_failure(error, converter)
        return ProcessResult(failure=failure, last_heartbeat=last[0] if last else None)
    finally:
        current.reset(token)


@cache
def _made(converter_class: type[Any]) -> Any:
    return converter_class()
