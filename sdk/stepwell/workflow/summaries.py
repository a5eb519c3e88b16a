"""Texts for people beside activities and timers (PM-27, TM-06): checked here, shown in histories, never compared."""

from ..api.common import UserMetadata
from ..api.limits import MAX_SUMMARY_BYTES
from ..api.payloads import Payload
from ..replay.runtime import WorkflowRuntime


def summary_payload(runtime: WorkflowRuntime, what: str, summary: str | None) -> Payload | None:
    """Raises ``TypeError`` for what is no text, ``ValueError`` for one that is too long."""
    if summary is None:
        return None
    if not isinstance(summary, str):
        raise TypeError(f"{what}: summary must be text, not {type(summary).__name__}")
    size = len(summary.encode(errors="replace"))
    if size > MAX_SUMMARY_BYTES:
        raise ValueError(f"{what}: summary has {size} bytes, the limit is {MAX_SUMMARY_BYTES}; shorten it")
    return runtime.payload_converter.to_payload(summary, str)


def user_metadata(runtime: WorkflowRuntime, what: str, summary: str | None) -> UserMetadata | None:
    """The same as it travels with a command."""
    payload = summary_payload(runtime, what, summary)
    return None if payload is None else UserMetadata(summary=payload)
