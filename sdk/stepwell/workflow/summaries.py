"""Texts for people beside activities and timers (PM-27, TM-06): checked here, shown in histories, never compared."""

from ..api.common import UserMetadata
from ..api.limits import MAX_DETAILS_BYTES, MAX_SUMMARY_BYTES
from ..api.payloads import Payload
from ..replay.runtime import WorkflowRuntime


def summary_payload(runtime: WorkflowRuntime, what: str, summary: str | None) -> Payload | None:
    """Raises ``TypeError`` for what is no text, ``ValueError`` for one that is too long."""
    return _payload(runtime, f"{what}: summary", summary, MAX_SUMMARY_BYTES)


def user_metadata(
    runtime: WorkflowRuntime, what: str, summary: str | None, details: str | None = None
) -> UserMetadata | None:
    """The same as it travels with a command."""
    payload = summary_payload(runtime, what, summary)
    more = _payload(runtime, f"{what}: details", details, MAX_DETAILS_BYTES)
    return None if payload is None and more is None else UserMetadata(summary=payload, details=more)


def _payload(runtime: WorkflowRuntime, what: str, text: str | None, limit: int) -> Payload | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"{what} must be text, not {type(text).__name__}")
    size = len(text.encode(errors="replace"))
    if size > limit:
        raise ValueError(f"{what} has {size} bytes, the limit is {limit}; shorten it")
    return runtime.payload_converter.to_payload(text, str)
