"""How large a failure record is, and how it is brought within what the engine takes."""

import msgspec

from ..api.failures import ApplicationFailureInfo, Failure
from ..api.limits import MAX_PAYLOAD_BYTES
from ..api.payloads import size_of


def failure_size(failure: Failure | None) -> int:
    """Bytes of texts and details, through the chain of causes."""
    size = 0
    while failure is not None:
        details = getattr(failure.info, "details", ()) or getattr(failure.info, "last_heartbeat_details", ())
        encoded = failure.encoded_attributes
        size += len(failure.message) + len(failure.stack_trace) + size_of(details)
        size += 0 if encoded is None else size_of((encoded,))
        failure = failure.cause
    return size


def within_limit(failure: Failure) -> Failure:
    """The failure, less details and causes when it is larger than a payload may be: its type and message are what
    matters, and one that the engine refuses would leave its activity to its timeout again and again (WC-26)."""
    size = failure_size(failure)
    if size <= MAX_PAYLOAD_BYTES:
        return failure
    info = failure.info
    if isinstance(info, ApplicationFailureInfo):
        info = msgspec.structs.replace(info, details=())
    message = f"{failure.message} [details and causes dropped: {size} bytes, the limit is {MAX_PAYLOAD_BYTES}]"
    return msgspec.structs.replace(failure, message=message, cause=None, info=info)
